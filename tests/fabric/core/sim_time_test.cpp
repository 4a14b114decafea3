#include "fabric/core/sim_time.hpp"

#include <gtest/gtest.h>

namespace fabric {
namespace {

TEST(SimTime, PrintsExactlyInAFittingUnit) {
    EXPECT_EQ(to_string(0_ps), "0 ps");
    EXPECT_EQ(to_string(999_ps), "999 ps");
    EXPECT_EQ(to_string(12'500_ps), "12.5 ns");
    EXPECT_EQ(to_string(1_us + 1_ps), "1.000001 us");
    EXPECT_EQ(to_string(20_ms), "20 ms");
    EXPECT_EQ(to_string(SimDuration(-1500)), "-1.5 ns");
    EXPECT_EQ(to_string(kSimStart + 58_s), "58 s");
}

}  // namespace
}  // namespace fabric
