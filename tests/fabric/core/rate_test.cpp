#include "fabric/core/rate.hpp"

#include <gtest/gtest.h>

namespace fabric {
namespace {

TEST(Rate, OfALinkIsItsLanesTimesTheirDataRate) {
    EXPECT_EQ(effective_rate(LinkWidth::k1x, LinkSpeed::kSdr), Rate(2'000'000'000));
    EXPECT_EQ(effective_rate(LinkWidth::k4x, LinkSpeed::kDdr), Rate(16'000'000'000));
    EXPECT_EQ(effective_rate(LinkWidth::k4x, LinkSpeed::kQdr), Rate(32'000'000'000));
    EXPECT_EQ(effective_rate(LinkWidth::k4x, LinkSpeed::kFdr10), Rate(40'000'000'000));
    EXPECT_EQ(effective_rate(LinkWidth::k12x, LinkSpeed::kEdr), Rate(300'000'000'000));
    EXPECT_EQ(effective_rate(LinkWidth::k4x, LinkSpeed::kHdr), Rate(200'000'000'000));
    EXPECT_EQ(effective_rate(LinkWidth::k2x, LinkSpeed::kNdr), Rate(200'000'000'000));
    EXPECT_EQ(effective_rate(LinkWidth::k8x, LinkSpeed::kXdr), Rate(1'600'000'000'000));
}

TEST(Rate, IsStatedInRoundNumbers) {
    EXPECT_EQ(nominal_rate(LinkWidth::k1x, LinkSpeed::kSdr), 25U);
    EXPECT_EQ(nominal_rate(LinkWidth::k4x, LinkSpeed::kFdr), 560U);
    EXPECT_EQ(nominal_rate(LinkWidth::k2x, LinkSpeed::kXdr), 4000U);
}

TEST(Rate, NamesAreThoseOfTheMarket) {
    EXPECT_EQ(to_string(LinkSpeed::kNdr), "NDR");
    EXPECT_EQ(to_string(LinkWidth::k2x), "2x");
}

TEST(Rate, TakesWholePicosecondsWhereItCan) {
    EXPECT_EQ(Rate(100'000'000'000).transmission_time(0), 0_ps);
    EXPECT_EQ(Rate(100'000'000'000).transmission_time(1), 80_ps);
    EXPECT_EQ(Rate(800'000'000'000).transmission_time(4096), 40'960_ps);
}

TEST(Rate, RoundsUpWhereItCannot) {
    // 8 bits at 54,545,454,545 bit/s: 146.66... ps.
    EXPECT_EQ(effective_rate(LinkWidth::k4x, LinkSpeed::kFdr).transmission_time(1), 147_ps);
    EXPECT_EQ(effective_rate(LinkWidth::k4x, LinkSpeed::kFdr).transmission_time(3), 441_ps);
    EXPECT_EQ(Rate(1).transmission_time(1), 8_s);
}

TEST(Rate, HoldsTheLargestFrameAtAnyRate) {
    EXPECT_EQ(Rate(1'000'000'007).transmission_time(0xFFFF'FFFF).count(), 34'359'738'119'482);
}

}  // namespace
}  // namespace fabric
