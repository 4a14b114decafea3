#include "simverbs/time/stall_watch.hpp"

#include <gtest/gtest.h>

namespace simverbs::test {
namespace {

TEST(StallWatch, FindsOnceThatNothingIsLeft) {
    StallWatch watch;
    for (std::uint32_t i = 1; i < StallWatch::kEmptySteps; ++i) {
        ASSERT_EQ(watch.stepped(0, 0), Stall::kNone) << i;
    }
    EXPECT_EQ(watch.stepped(0, 0), Stall::kNothingLeft);
    EXPECT_EQ(watch.stepped(0, 0), Stall::kNone);
}

TEST(StallWatch, FindsEventsThatNeverEnd) {
    StallWatch watch;
    EXPECT_EQ(watch.stepped(StallWatch::kEndlessEvents, 0), Stall::kNone);
    EXPECT_EQ(watch.stepped(1, 0), Stall::kEndless);
    EXPECT_EQ(watch.stepped(1, 0), Stall::kNone);
}

TEST(StallWatch, BeginsAnewWithACallAndWithADelivery) {
    StallWatch watch;
    watch.stepped(StallWatch::kEndlessEvents, 0);
    watch.called();
    EXPECT_EQ(watch.stepped(StallWatch::kEndlessEvents, 0), Stall::kNone);
    EXPECT_EQ(watch.stepped(StallWatch::kEndlessEvents, 1), Stall::kNone) << "something came";
}

}  // namespace
}  // namespace simverbs::test
