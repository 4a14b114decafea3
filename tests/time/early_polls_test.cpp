// Which polls end while time stands: after 1 ms, then ever more rarely.
#include "simverbs/time/early_polls.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace simverbs::test {
namespace {

using namespace std::chrono_literals;

TEST(EarlyPolls, AreDueAfterAMillisecondThenEverMoreRarely) {
    EarlyPolls polls;
    EXPECT_EQ(polls.due_in(), 1ms);
    EXPECT_FALSE(polls.are_due(0ms));
    EXPECT_FALSE(polls.are_due(999us));
    EXPECT_EQ(polls.due_in(), 1us);
    EXPECT_TRUE(polls.are_due(1ms));
    EXPECT_FALSE(polls.are_due(1ms)) << "as long as it was";
    EXPECT_TRUE(polls.are_due(2ms));
    EXPECT_FALSE(polls.are_due(3ms));
    EXPECT_TRUE(polls.are_due(4ms));
    EXPECT_TRUE(polls.are_due(100ms));
    EXPECT_TRUE(polls.are_due(200ms));
    EXPECT_EQ(polls.due_in(), 16ms);
    EXPECT_FALSE(polls.are_due(215ms));
    EXPECT_TRUE(polls.are_due(216ms)) << "16 ms is the longest";
    EXPECT_TRUE(polls.are_due(232ms));
}

TEST(EarlyPolls, BeginAnewWhenTimeHasMoved) {
    EarlyPolls polls;
    EXPECT_TRUE(polls.are_due(50ms));
    polls.time_moved();
    EXPECT_TRUE(polls.are_due(50ms)) << "it runs for that long already";
    EXPECT_FALSE(polls.are_due(50ms));
}

TEST(EarlyPolls, BeginAnewWithAnotherThread) {
    EarlyPolls polls;
    EXPECT_TRUE(polls.are_due(1s));
    EXPECT_FALSE(polls.are_due(0ms)) << "the first one waits";
    EXPECT_TRUE(polls.are_due(1ms));
}

}  // namespace
}  // namespace simverbs::test
