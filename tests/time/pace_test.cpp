#include "simverbs/time/pace.hpp"

#include <optional>

#include <gtest/gtest.h>

namespace simverbs::test {
namespace {

using fabric::SimDuration;
using fabric::SimTime;
using namespace fabric::literals;

constexpr std::int64_t kMs = 1'000'000;  // of the wall, in nanoseconds

SimTime at(SimDuration since_start) {
    return fabric::kSimStart + since_start;
}

TEST(Pace, IsTheWallsFromTheFirstQuestionOn) {
    Pace pace;
    EXPECT_FALSE(pace.allows(at(15_ms), at(10_ms), 100 * kMs));
    EXPECT_FALSE(pace.allows(at(15_ms), at(10_ms), 105 * kMs - 1));
    EXPECT_TRUE(pace.allows(at(15_ms), at(10_ms), 105 * kMs));
    EXPECT_FALSE(pace.allows(at(16_ms), at(15_ms), 105 * kMs));
    EXPECT_TRUE(pace.allows(at(16_ms), at(15_ms), 106 * kMs));
}

TEST(Pace, OnlyDelays) {
    Pace pace;
    EXPECT_FALSE(pace.allows(at(1_ms), at(0_ms), 0));
    // Events that were late come at once, and none before its time.
    EXPECT_TRUE(pace.allows(at(1_ms), at(0_ms), 50 * kMs));
    EXPECT_TRUE(pace.allows(at(50_ms), at(1_ms), 50 * kMs));
    EXPECT_FALSE(pace.allows(at(51_ms), at(50_ms), 50 * kMs));
}

TEST(Pace, ReachesAsFarAsTheWall) {
    Pace pace;
    EXPECT_EQ(pace.reaches(at(10_ms), 100 * kMs), at(10_ms));
    EXPECT_EQ(pace.reaches(at(11_ms), 103 * kMs), at(13_ms));
    EXPECT_TRUE(pace.allows(at(13_ms), at(12_ms), 103 * kMs));
    EXPECT_FALSE(pace.allows(at(13_ms) + SimDuration(1), at(12_ms), 103 * kMs));
}

TEST(Pace, AllowsWhatIsDueNow) {
    Pace pace;
    EXPECT_TRUE(pace.allows(at(10_ms), at(10_ms), 7));
}

TEST(Pace, BeginsAgainAfterAStop) {
    Pace pace;
    EXPECT_FALSE(pace.allows(at(5_ms), at(0_ms), 0));
    pace.stop();
    EXPECT_FALSE(pace.allows(at(5_ms), at(0_ms), 100 * kMs)) << "the wall has gone on meanwhile";
    EXPECT_TRUE(pace.allows(at(5_ms), at(0_ms), 105 * kMs));
}

TEST(Pace, DoesNotBeginWithoutAnEvent) {
    Pace pace;
    EXPECT_TRUE(pace.allows(std::nullopt, at(0_ms), 0));
    EXPECT_FALSE(pace.allows(at(5_ms), at(0_ms), 100 * kMs));
}

}  // namespace
}  // namespace simverbs::test
