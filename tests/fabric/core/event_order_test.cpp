// The loop and the wheel against a std::map, the plainest thing that keeps (time, key) order, under
// random scheduling, arming, re-arming, cancelling and looking ahead.
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/random.hpp"
#include "fabric/core/timer.hpp"

namespace fabric {
namespace {

class OrderCheck final : public EventHandler {
  public:
    static constexpr std::uint32_t kTimers = 40;

    explicit OrderCheck(std::uint64_t seed) : random_(seed, "order_check", "all") {
        for (std::uint32_t i = 0; i < kTimers; ++i) {
            timers_.emplace_back(loop_, timer_key(i), *this, i);
        }
    }

    void run(int steps) {
        for (int step = 0; step < steps; ++step) {
            act();
            if (random_.chance({1, 8})) {
                check_next_time();
                loop_.run_until(loop_.now() + random_delay());
            } else if (random_.chance({1, 4})) {
                loop_.run_instant();
            }
        }
        loop_.run_until(SimTime::max());
        EXPECT_TRUE(expected_.empty());
        EXPECT_TRUE(loop_.empty());
    }

    void handle(const Event& event) override {
        ASSERT_FALSE(expected_.empty());
        EXPECT_EQ(expected_.begin()->first, std::pair(event.time, event.key));
        EXPECT_EQ(expected_.begin()->second, event.argument);
        EXPECT_EQ(loop_.now(), event.time);
        expected_.erase(expected_.begin());
        if (random_.chance({1, 3})) {
            act();
        }
    }

    [[nodiscard]] std::uint64_t events_run() const { return loop_.events_run(); }

  private:
    static EventKey timer_key(std::uint32_t i) {
        return {EventClass::kTimer, NodeId{i % 3}, PortNumber{0}, i};
    }

    // From picoseconds to minutes, with many equal ones.
    SimDuration random_delay() {
        const std::uint64_t magnitude = random_.below(46);
        const std::uint64_t delay = random_.chance({1, 3})
                                        ? std::uint64_t{1} << magnitude
                                        : random_.below(std::uint64_t{2} << magnitude) + 1;
        return SimDuration(static_cast<std::int64_t>(delay));
    }

    void act() {
        const SimTime deadline = loop_.now() + random_delay();
        const auto i = static_cast<std::uint32_t>(random_.below(kTimers));
        Timer& timer = timers_[i];
        if (random_.chance({1, 3})) {
            const EventKey key(EventClass::kApplication, NodeId{i}, PortNumber{1}, ++sequence_);
            loop_.schedule({deadline, key, this, sequence_});
            expected_.emplace(std::pair(deadline, key), sequence_);
            return;
        }
        if (timer.armed()) {
            EXPECT_EQ(expected_.erase({timer.deadline(), timer_key(i)}), 1U);
        }
        if (random_.chance({1, 4})) {
            timer.cancel();
        } else {
            timer.arm(deadline);
            expected_.emplace(std::pair(deadline, timer_key(i)), i);
        }
    }

    void check_next_time() {
        const std::optional<SimTime> next = loop_.next_time();
        EXPECT_EQ(next.has_value(), !expected_.empty());
        if (next) {
            EXPECT_EQ(*next, expected_.begin()->first.first);
        }
    }

    RandomStream random_;
    EventLoop loop_;
    std::deque<Timer> timers_;
    std::map<std::pair<SimTime, EventKey>, std::uint64_t> expected_;
    std::uint32_t sequence_ = 0;
};

TEST(EventOrder, IsThatOfASortedMapWhateverIsScheduled) {
    std::uint64_t events = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        OrderCheck check(seed);
        check.run(2000);
        events += check.events_run();
    }
    EXPECT_GT(events, 40'000U);
}

}  // namespace
}  // namespace fabric
