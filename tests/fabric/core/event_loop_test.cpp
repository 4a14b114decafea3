#include "fabric/core/event_loop.hpp"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

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

constexpr EventKey key(EventClass event_class, std::uint32_t node = 0) {
    return {event_class, NodeId{node}, PortNumber{0}, 0};
}
constexpr SimTime at(SimDuration since_start) {
    return kSimStart + since_start;
}

TEST(EventLoop, TimeIsThatOfTheLastEvent) {
    EventLoop loop;
    Recorder recorder;
    loop.schedule({at(5_us), key(EventClass::kTimer), &recorder, 0});
    EXPECT_EQ(loop.now(), kSimStart);
    EXPECT_EQ(loop.run_until(at(1_s)), 1U);
    EXPECT_EQ(loop.now(), at(5_us));
}

// An event's own consequences may come to pass before anything else does.
TEST(EventLoop, AnEventMayTakeTimeUpToTheNext) {
    EventLoop loop;
    Recorder first;
    Recorder other;
    Timer timer(loop, key(EventClass::kTimer, 2), other);
    timer.arm(at(7_us));
    loop.schedule({at(5_us), key(EventClass::kFrameArrival), &first, 0});
    loop.schedule({at(8_us), key(EventClass::kFrameArrival, 1), &other, 0});
    first.then = [&loop](const Event&) {
        EXPECT_EQ(loop.horizon(), at(7_us));
        loop.advance(at(6_us));
    };
    loop.run_instant();
    EXPECT_EQ(loop.now(), at(6_us));
    EXPECT_TRUE(loop.only_frames_moved());
    loop.run_instant();
    EXPECT_EQ(loop.now(), at(7_us));
    EXPECT_FALSE(loop.only_frames_moved());
    loop.schedule({at(7500_ns), key(EventClass::kFrameArrival), &first, 0});
    first.then = [&loop](const Event&) { EXPECT_EQ(loop.horizon(), at(7600_ns) + SimDuration(1)); };
    loop.run_until(at(7600_ns));
}

TEST(EventLoop, RunsNoInstantAfterTheLatest) {
    EventLoop loop;
    Recorder recorder;
    Timer timer(loop, key(EventClass::kTimer, 2), recorder);
    timer.arm(at(7_us));
    loop.schedule({at(5_us), key(EventClass::kFrameArrival), &recorder, 0});
    EXPECT_EQ(loop.run_instant(at(5_us) - SimDuration(1)), 0U);
    EXPECT_EQ(loop.now(), kSimStart);
    recorder.then = [&loop](const Event&) {
        EXPECT_EQ(loop.limit(), at(6_us) + SimDuration(1));
        EXPECT_EQ(loop.horizon(), at(6_us) + SimDuration(1));
    };
    EXPECT_EQ(loop.run_instant(at(6_us)), 1U);
    EXPECT_EQ(loop.run_instant(at(6_us)), 0U) << "the timer comes later";
    EXPECT_EQ(loop.now(), at(5_us));
    recorder.then = [&loop](const Event&) { EXPECT_EQ(loop.limit(), SimTime::max()); };
    EXPECT_EQ(loop.run_instant(), 1U);
    EXPECT_EQ(loop.now(), at(7_us));
}

TEST(EventLoop, StandsStillWithNothingToDo) {
    EventLoop loop;
    EXPECT_TRUE(loop.empty());
    EXPECT_EQ(loop.next_time(), std::nullopt);
    EXPECT_EQ(loop.run_instant(), 0U);
    EXPECT_EQ(loop.run_until(at(1_s)), 0U);
    EXPECT_EQ(loop.now(), kSimStart);
}

TEST(EventLoop, RunsOneInstantClassByClassAndNodeByNode) {
    EventLoop loop;
    Recorder recorder;
    const std::vector<EventKey> order = {
        key(EventClass::kLinkState, 7), key(EventClass::kFrameArrival, 1),
        key(EventClass::kFrameArrival, 2), key(EventClass::kTimer, 0),
        key(EventClass::kApplication, 0)};
    for (const std::size_t i : {3U, 1U, 4U, 0U, 2U}) {
        loop.schedule({at(1_ns), order[i], &recorder, i});
    }
    loop.schedule({at(2_ns), order[0], &recorder, 5});
    EXPECT_EQ(loop.run_instant(), 5U);
    for (std::size_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(recorder.fired[i].argument, i);
    }
    EXPECT_EQ(loop.next_time(), at(2_ns));
}

TEST(EventLoop, AnInstantIncludesWhatItAddsToItself) {
    EventLoop loop;
    Recorder recorder;
    recorder.then = [&](const Event& event) {
        if (event.key.event_class() == EventClass::kFrameArrival) {
            loop.schedule({loop.now(), key(EventClass::kApplication), &recorder, 0});
        }
    };
    loop.schedule({at(1_ns), key(EventClass::kFrameArrival), &recorder, 0});
    EXPECT_EQ(loop.run_instant(), 2U);
    EXPECT_TRUE(loop.empty());
}

TEST(EventLoop, KnowsTheNextTimeWhileAnEventRuns) {
    EventLoop loop;
    Recorder recorder;
    std::vector<std::optional<SimTime>> seen;
    recorder.then = [&](const Event&) { seen.push_back(loop.next_time()); };
    loop.schedule({at(1_ns), key(EventClass::kTimer), &recorder, 0});
    loop.schedule({at(3_ns), key(EventClass::kTimer), &recorder, 0});
    loop.run_until(at(1_s));
    EXPECT_EQ(seen, (std::vector<std::optional<SimTime>>{at(3_ns), std::nullopt}));
}

TEST(EventLoop, TakesBackAnEventAsIfItHadNeverBeen) {
    EventLoop loop;
    Recorder recorder;
    for (std::uint32_t node = 0; node < 20; ++node) {
        loop.schedule({at(1_ns) + SimDuration(node * 7 % 20), key(EventClass::kTimer, node),
                       &recorder, node});
    }
    EXPECT_TRUE(loop.cancel(at(1_ns) + SimDuration(19 * 7 % 20), key(EventClass::kTimer, 19)));
    EXPECT_FALSE(loop.cancel(at(1_ns) + SimDuration(19 * 7 % 20), key(EventClass::kTimer, 19)));
    loop.run_until(at(1_s));
    ASSERT_EQ(recorder.fired.size(), 19U);
    for (std::size_t i = 1; i < recorder.fired.size(); ++i) {
        EXPECT_LT(recorder.fired[i - 1].time, recorder.fired[i].time);
    }
}

using EventLoopDeathTest = testing::Test;

TEST(EventLoopDeathTest, RefusesThePast) {
    EventLoop loop;
    Recorder recorder;
    loop.schedule({at(2_ns), key(EventClass::kTimer), &recorder, 0});
    loop.run_instant();
    EXPECT_DEATH(loop.schedule({at(1_ns), key(EventClass::kTimer), &recorder, 0}),
                 "is scheduled at 2000 ps");
}

TEST(EventLoopDeathTest, RefusesAnEarlierClassOfTheSameInstant) {
    EventLoop loop;
    Recorder recorder;
    recorder.then = [&](const Event&) {
        loop.schedule({loop.now(), key(EventClass::kFrameArrival), &recorder, 0});
    };
    loop.schedule({at(2_ns), key(EventClass::kTimer), &recorder, 0});
    EXPECT_DEATH(loop.run_instant(), "an event of class 1 for 2000 ps");
}

TEST(EventLoopDeathTest, RefusesTwoEventsThatNothingOrders) {
    EventLoop loop;
    Recorder recorder;
    loop.schedule({at(2_ns), key(EventClass::kTimer), &recorder, 0});
    loop.schedule({at(2_ns), key(EventClass::kTimer), &recorder, 1});
    EXPECT_DEATH(loop.run_instant(), "two events of one instant");
}

}  // namespace
}  // namespace fabric
