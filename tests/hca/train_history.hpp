// Two runs of one history: in one packets may go as trains, in the other they go one by one since a
// filter looks at each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "fabric/net/switch.hpp"
#include "fabric/trace/memory_sink.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {

// Looks at frames one by one, and lets them all pass.
class Onlooker final : public fabric::LinkFilter {
  public:
    fabric::Verdict inspect(fabric::SimTime /*now*/, fabric::Frame& frame,
                            const fabric::LinkDirection& /*direction*/) override {
        EXPECT_EQ(frame.packets, 1U);
        return fabric::Verdict::kPass;
    }
};

// Lets the next work request of a queue fail.
class FailsNext final : public DeviceFaults {
  public:
    void of(const QueuePair& qp, CompletedQueue queue) {
        whose_ = &qp;
        queue_ = queue;
    }
    std::optional<InjectedFault> work_request(QueuePair& qp, CompletedQueue queue) override {
        if (&qp != whose_ || queue != queue_) {
            return std::nullopt;
        }
        whose_ = nullptr;
        return InjectedFault{WcStatus::kGeneralErr};
    }
    int command(Hca& /*hca*/, CommandCode /*command*/) override { return 0; }

  private:
    const QueuePair* whose_ = nullptr;
    CompletedQueue queue_ = CompletedQueue::kSend;
};

enum class Packets : std::uint8_t { kAsTrains, kSingle };

using Seen = std::vector<std::pair<std::string, std::uint64_t>>;

// A pair whose packets may be trains, or may not since a filter looks at them on each link.
class History {
  public:
    explicit History(Packets packets, const PairOptions& options = {});
    ~History();
    History(const History&) = delete;
    History& operator=(const History&) = delete;

    // All that can be seen of both ends and of all links now, time and digest included; what lands
    // in memory as a hash.
    [[nodiscard]] Seen state();

    void fail_next(const QueuePair& qp, CompletedQueue queue) {
        fails_.of(qp, queue);
        pair.simulation().set_device_faults(&fails_);
    }
    // From now on packets are recorded.
    void record_packets();
    [[nodiscard]] std::uint64_t events() { return pair.simulation().loop().events_run(); }
    // The links at `a` and at `b`.
    [[nodiscard]] fabric::Link& first_link() { return *pair.a.host.hca().port(1).link(); }
    [[nodiscard]] fabric::Link& last_link() { return *pair.b.host.hca().port(1).link(); }
    // nullptr: there is none.
    [[nodiscard]] fabric::Switch* first_switch();

    Pair pair;

  private:
    template <class F>
    void for_each_direction(F&& visit) {
        fabric::Network& network = pair.simulation().network();
        for (std::size_t i = 0; i < network.link_count(); ++i) {
            for (const std::size_t end : {0U, 1U}) {
                visit(*network.link(i).end(end).outgoing());
            }
        }
    }
    static void add_memory(const std::string& of, const Side& side, Seen& seen);
    static void add_counters(const std::string& of, const Side& side, Seen& seen);
    static void add_queue_pairs(const std::string& of, const Side& side, Seen& seen);
    static void add_port(const std::string& of, const fabric::Port& port, Seen& seen);

    Onlooker onlooker_;
    FailsNext fails_;
    fabric::trace::MemorySink packets_;
    bool looked_at_ = false;
    bool records_ = false;
};

// One line for each value that is not the same; "": all are.
[[nodiscard]] std::string differences(const Seen& trains, const Seen& singles);

// The length of a message of nine packets of 1024 bytes, of which the last is shorter.
inline constexpr std::size_t kNinePackets = 9 * 1024 - 100;

using Step = std::function<void(History&)>;

// Runs both, step by step, and compares what can be seen after each.
void expect_one_run(const std::vector<Step>& steps, const PairOptions& options = {});
// The steps as one: to look after each would cut the trains.
[[nodiscard]] Step one_by_one(std::vector<Step> steps);

[[nodiscard]] Step until(fabric::SimDuration duration);
// The same for a caller that has a turn again only after `duration`: trains that arrive by then
// arrive as one.
[[nodiscard]] Step walk(fabric::SimDuration duration);
void to_the_end(History& run);

// An event that may happen between two packets of a message from `a` to `b`.
struct Act {
    std::string_view name;
    Step happens;
};
// When something happens in a run without trains in which `a` sends, writes or reads `length`
// bytes.
[[nodiscard]] std::vector<fabric::SimDuration> instants_of(WrOpcode opcode, std::size_t length,
                                                           const PairOptions& options);
// Tries each act at each of the instants and a little later, with a look at everything after each
// step and without. An `every` of 3 takes every third instant, beginning with number `first`.
void try_acts(std::size_t length, const PairOptions& options, std::size_t first = 0,
              std::size_t every = 1);

// Some are of links; they happen to the first link of the path and to the last.
[[nodiscard]] const std::vector<Act>& acts_of_trains();

}  // namespace simverbs::test
