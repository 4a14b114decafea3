#include "fabric/core/assert.hpp"

#include <gtest/gtest.h>

namespace fabric {
namespace {

struct FixedContext final : ReplayContext {
    [[nodiscard]] SimTime now() const override { return kSimStart + 12'500_ps; }
    [[nodiscard]] NodeId node() const override { return NodeId{3}; }
    [[nodiscard]] std::string replay_line() const override { return "simverbs run --seed 7"; }
};

using AssertDeathTest = testing::Test;

TEST(AssertDeathTest, NamesWhatBroke) {
    EXPECT_DEATH(SIMVERBS_ASSERT(1 + 1 == 3, "arithmetic gives {}", 2),
                 "1 \\+ 1 == 3\n  arithmetic gives 2\n  at .*assert_test.cpp");
}

TEST(AssertDeathTest, NamesTimeNodeAndReplayLineOfTheRun) {
    const FixedContext context;
    const ReplayScope scope(context);
    EXPECT_DEATH(SIMVERBS_ASSERT(false, "broken"),
                 "virtual time 12500 ps \\(12.5 ns\\), node 3\n  replay: simverbs run --seed 7");
}

TEST(AssertDeathTest, SaysNothingOfARunThatIsOver) {
    const FixedContext context;
    { const ReplayScope scope(context); }
    EXPECT_EXIT({ SIMVERBS_ASSERT(false, "broken"); }, testing::KilledBySignal(SIGABRT),
                "broken\n  at [^\n]*\n$");
}

}  // namespace
}  // namespace fabric
