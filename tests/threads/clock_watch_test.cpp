// When a program may have decided by the clock of the machine what it does next.
#include "simverbs/threads/clock_watch.hpp"

#include <gtest/gtest.h>

namespace simverbs {
namespace {

constexpr bool kPerhapsByTheClock = true;

TEST(ClockWatch, IgnoresAMeasurementAroundRequests) {
    ClockWatch watch;
    watch.acts(0);
    watch.read();
    EXPECT_FALSE(watch.acts(0));
    watch.polled_nothing(0);
    EXPECT_FALSE(watch.acts(1));
    watch.read();
    EXPECT_FALSE(watch.acts(1));
}

TEST(ClockWatch, SeesATimeLimitOnAnEmptyQueue) {
    ClockWatch watch;
    watch.acts(0);
    watch.polled_nothing(4);
    watch.read();
    EXPECT_EQ(watch.acts(4), kPerhapsByTheClock);
}

TEST(ClockWatch, BelievesThatACompletionDecided) {
    ClockWatch watch;
    watch.acts(0);
    watch.polled_nothing(4);
    watch.read();
    EXPECT_FALSE(watch.acts(5));
}

TEST(ClockWatch, SeesAClockThatIsReadAgainAndAgain) {
    ClockWatch watch;
    watch.acts(0);
    watch.read();
    watch.acts(0);
    watch.read();
    EXPECT_FALSE(watch.acts(0));
    watch.read();
    EXPECT_EQ(watch.acts(0), kPerhapsByTheClock);
}

TEST(ClockWatch, IgnoresTheLibrarysOwnReads) {
    ClockWatch watch;
    watch.acts(0);
    watch.is_inside = true;
    for (int i = 0; i < 10; ++i) {
        watch.polled_nothing(4);
        watch.read();
    }
    EXPECT_FALSE(watch.acts(4));
}

}  // namespace
}  // namespace simverbs
