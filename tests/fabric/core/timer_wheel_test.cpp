#include <deque>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"

namespace fabric {
namespace {

struct Recorder final : EventHandler {
    void handle(const Event& event) override {
        fired.push_back(event);
        if (then) {
            then(event);
        }
    }
    std::vector<Event> fired;
    std::function<void(const Event&)> then;
};

constexpr EventKey timer_key(std::uint32_t sequence) {
    return {EventClass::kTimer, NodeId{0}, PortNumber{0}, sequence};
}
constexpr SimTime at(SimDuration since_start) {
    return kSimStart + since_start;
}

TEST(TimerWheel, FiresInDeadlineOrderAcrossLevels) {
    EventLoop loop;
    Recorder recorder;
    const std::vector<SimDuration> delays = {100_s,     1_ps,      3_us, 40_ms,
                                             65'536_ps, 65'535_ps, 2_s,  3_us + 1_ps};
    std::deque<Timer> timers;
    for (std::uint32_t i = 0; i < delays.size(); ++i) {
        timers.emplace_back(loop, timer_key(i), recorder, i).arm_in(delays[i]);
    }
    EXPECT_EQ(loop.run_until(at(1000_s)), delays.size());
    for (std::size_t i = 0; i < delays.size(); ++i) {
        EXPECT_EQ(recorder.fired[i].time, at(delays[recorder.fired[i].argument]));
        EXPECT_TRUE(i == 0 || recorder.fired[i - 1].time < recorder.fired[i].time);
    }
    EXPECT_EQ(loop.now(), at(100_s));
}

TEST(TimerWheel, OrdersEqualDeadlinesByKey) {
    EventLoop loop;
    Recorder recorder;
    std::deque<Timer> timers;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const std::uint32_t sequence = i * 7 % 1000;
        timers.emplace_back(loop, timer_key(sequence), recorder, sequence).arm(at(1_ms));
    }
    EXPECT_EQ(loop.run_instant(), 1000U);
    for (std::size_t i = 0; i < recorder.fired.size(); ++i) {
        EXPECT_EQ(recorder.fired[i].argument, i);
    }
}

TEST(TimerWheel, TakesTurnsWithEventsOfTheHeap) {
    EventLoop loop;
    Recorder recorder;
    Timer timer(loop, timer_key(5), recorder, 1);
    timer.arm(at(1_us));
    loop.schedule({at(1_us), timer_key(4), &recorder, 0});
    loop.schedule({at(1_us), timer_key(6), &recorder, 2});
    EXPECT_EQ(loop.run_instant(), 3U);
    EXPECT_EQ(recorder.fired[0].argument, 0U);
    EXPECT_EQ(recorder.fired[1].argument, 1U);
    EXPECT_EQ(recorder.fired[2].argument, 2U);
}

TEST(TimerWheel, ACancelledTimerNeverMovesTheClock) {
    EventLoop loop;
    Recorder recorder;
    Timer timer(loop, timer_key(0), recorder);
    timer.arm_in(4_s);
    EXPECT_EQ(loop.next_time(), at(4_s));
    timer.cancel();
    timer.cancel();
    EXPECT_FALSE(timer.armed());
    EXPECT_TRUE(loop.empty());
    EXPECT_EQ(loop.run_until(SimTime::max()), 0U);
    EXPECT_EQ(loop.now(), kSimStart);
}

TEST(TimerWheel, AReArmedTimerFiresOnceAtItsLastDeadline) {
    EventLoop loop;
    Recorder recorder;
    Timer timer(loop, timer_key(0), recorder);
    for (const SimDuration delay : {4_s, 1_ns, 4_s + 5_ps, 4_s + 3_ps}) {
        timer.arm_in(delay);
        EXPECT_EQ(timer.deadline(), at(delay));
        EXPECT_EQ(loop.next_time(), at(delay));
    }
    loop.run_until(SimTime::max());
    ASSERT_EQ(recorder.fired.size(), 1U);
    EXPECT_EQ(recorder.fired[0].time, at(4_s + 3_ps));
}

TEST(TimerWheel, MayBeReArmedByItsOwnHandler) {
    EventLoop loop;
    Recorder recorder;
    Timer timer(loop, timer_key(0), recorder);
    recorder.then = [&](const Event&) {
        EXPECT_FALSE(timer.armed());
        if (recorder.fired.size() < 100) {
            timer.arm_in(1_ms);
        }
    };
    timer.arm_in(1_ms);
    loop.run_until(SimTime::max());
    EXPECT_EQ(loop.now(), at(100_ms));
}

TEST(TimerWheel, DestructionDisarms) {
    EventLoop loop;
    Recorder recorder;
    {
        Timer timer(loop, timer_key(0), recorder);
        timer.arm_in(1_ns);
    }
    EXPECT_TRUE(loop.empty());
}

// Looking ahead (and stopping at a limit) must not advance the wheel past what may still be armed.
TEST(TimerWheel, AcceptsAnEarlierDeadlineAfterLookingAhead) {
    EventLoop loop;
    Recorder recorder;
    Timer late(loop, timer_key(0), recorder, 0);
    Timer early(loop, timer_key(1), recorder, 1);
    late.arm_in(10_s);
    EXPECT_EQ(loop.next_time(), at(10_s));
    EXPECT_EQ(loop.run_until(at(9_s)), 0U);
    EXPECT_EQ(loop.now(), kSimStart);
    early.arm_in(2_ps);
    loop.run_until(SimTime::max());
    ASSERT_EQ(recorder.fired.size(), 2U);
    EXPECT_EQ(recorder.fired[0].argument, 1U);
}

using TimerDeathTest = testing::Test;

TEST(TimerDeathTest, RefusesThePast) {
    EventLoop loop;
    Recorder recorder;
    Timer timer(loop, timer_key(0), recorder);
    timer.arm_in(1_us);
    loop.run_instant();
    EXPECT_DEATH(timer.arm(at(1_ns)), "is scheduled at 1000000 ps");
}

}  // namespace
}  // namespace fabric
