// Memory that goes while a train on its way to it is deferred: the train is refused when somebody
// settles, which may be in the middle of anything.
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/hca/train_history.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;

constexpr std::size_t kMessageBytes = 40 * 1024UL;

// Runs something and settles no train, as if a process did it on its own.
class Unnoticed final : public fabric::EventHandler {
  public:
    explicit Unnoticed(std::function<void()> happens) : happens_(std::move(happens)) {}
    void handle(const fabric::Event& /*event*/) override { happens_(); }
    [[nodiscard]] bool tells_followers(const fabric::Event& /*event*/) const override {
        return true;
    }

  private:
    std::function<void()> happens_;
};

struct Outcome {
    std::vector<WcStatus> of_a;
    QpState a;
    QpState b;
    std::vector<WcStatus> of_bystander;

    bool operator==(const Outcome&) const = default;
};

QpState state_of(const Side& side, const QueuePairHandle& qp) {
    return side.host.hca().qps().find(qp.qpn())->report().state;
}

// `a` writes or reads forty packets, the memory that they land in goes after `time`, and a READ of
// `a`, which `b` answers while it looks at the links, is posted `later` than that.
Outcome run(Packets packets, WrOpcode opcode, fabric::SimDuration time, fabric::SimDuration later,
            const PairOptions& options) {
    History history(packets, options);
    Pair& pair = history.pair;
    QueuePairHandle from = pair.b.make_qp();
    QueuePairHandle to = pair.a.make_qp();
    pair.connect(from, pair.a, to);
    pair.connect(to, pair.b, from);
    Side& loser = opcode == WrOpcode::kRdmaRead ? pair.a : pair.b;
    Unnoticed goes([&loser] { loser.host.lose_memory(); });
    Unnoticed reads([&pair] { pair.a.qp.post(read_of(pair.a, pair.b, 2, 0, 20'000)); });
    pair.simulation().schedule_mark(time, goes);
    pair.simulation().schedule_mark(time + later, reads);
    Send send = write_of(pair.a, pair.b, 1, 0, kMessageBytes);
    send.opcode = opcode;
    pair.a.qp.post(send);
    pair.drive();
    Outcome outcome{statuses(pair.a.send_cq.poll()),
                    state_of(pair.a, pair.a.qp),
                    state_of(pair.b, pair.b.qp),
                    {}};
    // Others go on, where they need no memory.
    from.post(write_of(pair.b, pair.a, 3, 0, 0));
    pair.drive();
    outcome.of_bystander = statuses(pair.b.send_cq.poll());
    return outcome;
}

// Every third instant of such a message.
std::vector<fabric::SimDuration> some_instants(WrOpcode opcode, const PairOptions& options) {
    const std::vector<fabric::SimDuration> all = instants_of(opcode, kMessageBytes, options);
    std::vector<fabric::SimDuration> some;
    for (std::size_t i = 0; i < all.size(); i += 3) {
        some.push_back(all[i]);
    }
    return some;
}

void expect_one_outcome(WrOpcode opcode, const PairOptions& options) {
    for (const fabric::SimDuration time : some_instants(opcode, options)) {
        for (const std::int64_t later : {1'000, 150'000, 900'000}) {
            SCOPED_TRACE(testing::Message() << time.count() << " ps, " << later << " ps later");
            const fabric::SimDuration after(later);
            const Outcome single = run(Packets::kSingle, opcode, time, after, options);
            const Outcome trains = run(Packets::kAsTrains, opcode, time, after, options);
            ASSERT_EQ(trains, single);
            ASSERT_THAT(trains.of_bystander, ElementsAre(WcStatus::kSuccess));
        }
    }
}

TEST(VanishedMemory, FailsWhoReadsIntoItAndNobodyElse) {
    for (const MemoryOf whose : {MemoryOf::kThisProcess, MemoryOf::kAnother}) {
        for (const char* const topology : {"pair", "star:3"}) {
            SCOPED_TRACE(topology);
            expect_one_outcome(WrOpcode::kRdmaRead, {.topology = topology, .memory = whose});
        }
    }
}

TEST(VanishedMemory, FailsWhoWritesIntoItAndNobodyElse) {
    for (const char* const topology : {"pair", "star:3"}) {
        SCOPED_TRACE(topology);
        expect_one_outcome(WrOpcode::kRdmaWrite, {.topology = topology});
    }
}

// Packets that are refused late are still to be told so when the link goes down.
TEST(VanishedMemory, IsFoundBehindALinkThatWentDown) {
    const PairOptions options{.topology = "star:3"};
    const auto run = [&options](Packets packets, fabric::SimDuration time) {
        History history(packets, options);
        Pair& pair = history.pair;
        Unnoticed goes([&pair] { pair.b.host.lose_memory(); });
        pair.simulation().schedule_mark(time, goes);
        pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, kMessageBytes));
        pair.advance(time);
        history.last_link().set_state(fabric::LinkState::kDown);
        history.last_link().set_state(fabric::LinkState::kUp);
        pair.drive();
        return statuses(pair.a.send_cq.poll());
    };
    for (const fabric::SimDuration time : some_instants(WrOpcode::kRdmaWrite, options)) {
        SCOPED_TRACE(testing::Message() << time.count() << " ps");
        ASSERT_EQ(run(Packets::kAsTrains, time), run(Packets::kSingle, time));
    }
}

}  // namespace
}  // namespace simverbs::test
