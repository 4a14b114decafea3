// DCQCN's sender alone, against the arithmetic of the paper.
#include "simverbs/transport/rate_reaction.hpp"

#include <gtest/gtest.h>

#include "tests/transport/recording_effects.hpp"

namespace simverbs::test {
namespace {

constexpr std::uint64_t kLine = 100'000'000'000;

class RateReactionTest : public testing::Test {
  protected:
    void pass_time() { reaction_.timer_expired(EngineTimer::kIncrease, false); }

    QpAttributes attributes_;
    RecordingEffects effects_{attributes_};
    RateReaction reaction_{effects_};
};

TEST_F(RateReactionTest, HasNoTimersAndNoLimitBeforeTheFirstNotification) {
    EXPECT_FALSE(reaction_.limited());
    reaction_.sent(1'000'000'000);
    EXPECT_FALSE(reaction_.limited());
    EXPECT_FALSE(effects_.armed(EngineTimer::kAlpha));
    EXPECT_FALSE(effects_.armed(EngineTimer::kIncrease));
}

TEST_F(RateReactionTest, TheFirstNotificationHalves) {
    reaction_.notified(kLine);
    EXPECT_NEAR(static_cast<double>(reaction_.rate()), 50e9, 1e6);
    EXPECT_TRUE(effects_.armed(EngineTimer::kAlpha));
    EXPECT_TRUE(effects_.armed(EngineTimer::kIncrease));
    reaction_.notified(kLine);
    EXPECT_NEAR(static_cast<double>(reaction_.rate()), 25e9, 1e6);
    EXPECT_EQ(reaction_.time_of(1000).count(),
              8000 * 1'000'000'000'000 / static_cast<std::int64_t>(reaction_.rate()));
}

TEST_F(RateReactionTest, NeverFallsToNothing) {
    for (int i = 0; i < 1000; ++i) {
        reaction_.notified(kLine);
    }
    EXPECT_EQ(reaction_.rate(), kLine / 1000);
}

// Alpha falls by 1/256 a period: after 178 of them it is half, and a cut takes a quarter.
TEST_F(RateReactionTest, AlphaFallsWithTime) {
    reaction_.notified(kLine);
    for (int i = 0; i < 178; ++i) {
        reaction_.timer_expired(EngineTimer::kAlpha, false);
    }
    reaction_.notified(kLine);
    EXPECT_NEAR(static_cast<double>(reaction_.rate()), 50e9 * (1 - 0.25), 0.3e9);
}

// Half way to where it was, five times; then the target rises by 1/1000 of the line rate.
TEST_F(RateReactionTest, RecoversFastThenSlowly) {
    reaction_.notified(kLine);
    pass_time();                // 75 Gb/s
    reaction_.notified(kLine);  // 37.5 Gb/s, target 75
    auto expected = static_cast<double>(reaction_.rate());
    EXPECT_NEAR(expected, 37.5e9, 0.2e9);
    for (int i = 0; i < 5; ++i) {
        pass_time();
        expected = (expected + 75e9) / 2;
        EXPECT_NEAR(static_cast<double>(reaction_.rate()), expected, 2e6) << i;
    }
    pass_time();
    EXPECT_NEAR(static_cast<double>(reaction_.rate()), (expected + 75.1e9) / 2, 2e6);
}

// Several notifications before the rate has risen come of one queue.
TEST_F(RateReactionTest, CutsInARowLeaveTheTarget) {
    reaction_.notified(kLine);
    reaction_.notified(kLine);
    reaction_.notified(kLine);
    const auto cut = static_cast<double>(reaction_.rate());
    EXPECT_NEAR(cut, 12.5e9, 0.2e9);
    pass_time();
    EXPECT_NEAR(static_cast<double>(reaction_.rate()), (cut + 100e9) / 2, 2e6);
}

TEST_F(RateReactionTest, BytesAreAClockTooAndBothTogetherAreFast) {
    reaction_.notified(kLine);
    pass_time();
    reaction_.notified(kLine);
    const auto cut = static_cast<double>(reaction_.rate());
    reaction_.sent(10'000'000);
    EXPECT_NEAR(static_cast<double>(reaction_.rate()), (cut + 75e9) / 2, 2e6);
    for (int i = 0; i < 6; ++i) {
        reaction_.sent(10'000'000);
        pass_time();
    }
    const std::uint64_t before = reaction_.rate();
    reaction_.sent(10'000'000);
    pass_time();
    EXPECT_GT(reaction_.rate(), before + kLine / 200);
}

TEST_F(RateReactionTest, AtTheLineRateThereIsNoLimitAndNoTimer) {
    reaction_.notified(kLine);
    for (int i = 0; i < 2000 && reaction_.limited(); ++i) {
        pass_time();
    }
    EXPECT_FALSE(reaction_.limited());
    EXPECT_FALSE(effects_.armed(EngineTimer::kAlpha));
    EXPECT_FALSE(effects_.armed(EngineTimer::kIncrease));
}

TEST_F(RateReactionTest, WhoIsIdleHasNoLimit) {
    reaction_.notified(kLine);
    reaction_.timer_expired(EngineTimer::kAlpha, true);
    EXPECT_FALSE(reaction_.limited());
    EXPECT_FALSE(effects_.armed(EngineTimer::kIncrease));
}

}  // namespace
}  // namespace simverbs::test
