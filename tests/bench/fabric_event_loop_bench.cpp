// The event loop alone: the hold model (each event schedules its successor, so the number pending
// stays) with bimodal increments, and timers that are re-armed all the time.
#include <cstdint>
#include <deque>
#include <vector>

#include <benchmark/benchmark.h>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"

namespace fabric {
namespace {

// Cheap and good enough for a load; the simulation's own streams are RandomStream.
class LoadGenerator {
  public:
    std::uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_;
    }

    // Nine out of ten within 2 us (frames), the tenth within 1 ms (timeouts).
    SimDuration bimodal() {
        const std::uint64_t word = next();
        const std::uint64_t span = (word & 0xFF) < 26 ? 1'000'000'000 : 2'000'000;
        return SimDuration(static_cast<std::int64_t>((word >> 16) % span) + 1);
    }

  private:
    std::uint64_t state_ = 88172645463325252U;
};

class Holder final : public EventHandler {
  public:
    Holder(EventLoop& loop, LoadGenerator& load) : loop_(loop), load_(load) {}
    void handle(const Event& event) override {
        loop_.schedule({event.time + load_.bimodal(), event.key, this, event.argument});
    }

  private:
    EventLoop& loop_;
    LoadGenerator& load_;
};

void hold(benchmark::State& state) {
    EventLoop loop;
    LoadGenerator load;
    Holder holder(loop, load);
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(state.range(0)); ++i) {
        const EventKey key(EventClass::kFrameArrival, NodeId{i}, PortNumber{1}, 0);
        loop.schedule({kSimStart + load.bimodal(), key, &holder, i});
    }
    for (auto _ : state) {
        loop.run_instant();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(loop.events_run()));
}
BENCHMARK(hold)->Arg(16)->Arg(1'000)->Arg(100'000);

// A message on each of many queue pairs in turn re-arms its timer; one event a message moves time.
class Messages final : public EventHandler {
  public:
    Messages(EventLoop& loop, std::uint32_t queue_pairs) : loop_(loop) {
        for (std::uint32_t i = 0; i < queue_pairs; ++i) {
            const EventKey key(EventClass::kTimer, NodeId{0}, PortNumber{1}, i);
            timers_.emplace_back(loop, key, *this).arm_in(SimDuration(kTimeout));
        }
    }
    void handle(const Event& event) override {
        timers_[next_].arm(event.time + SimDuration(kTimeout));
        next_ = next_ + 1 == timers_.size() ? 0 : next_ + 1;
        loop_.schedule({event.time + 100_ns, event.key, this, 0});
    }

  private:
    static constexpr std::int64_t kTimeout = 67'000'000'000;  // 67 ms: local ACK timeout 14
    EventLoop& loop_;
    std::deque<Timer> timers_;
    std::size_t next_ = 0;
};

void rearm_a_timer_with_each_message(benchmark::State& state) {
    EventLoop loop;
    Messages messages(loop, static_cast<std::uint32_t>(state.range(0)));
    loop.schedule({kSimStart + 1_ns,
                   EventKey(EventClass::kFrameArrival, NodeId{0}, PortNumber{1}, 0), &messages, 0});
    for (auto _ : state) {
        loop.run_instant();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(loop.events_run()));
}
BENCHMARK(rearm_a_timer_with_each_message)->Arg(1)->Arg(1'000)->Arg(500'000);

}  // namespace
}  // namespace fabric
