#include "simverbs/cm/times.hpp"

#include <gtest/gtest.h>

namespace simverbs::cm {
namespace {

using namespace fabric::literals;

TEST(CmTimes, CodesArePowersOfTwo) {
    EXPECT_EQ(coded_time(0), 4096_ns);
    EXPECT_EQ(coded_time(1), 8192_ns);
    EXPECT_EQ(coded_time(14), 67'108'864_ns);
    EXPECT_EQ(coded_time(31), 8'796'093'022'208_ns) << "two hours and a half";
    EXPECT_EQ(coded_time(63), coded_time(31));
}

// cm_ack_timeout() of Linux, worked out by hand.
TEST(CmTimes, TheAckTimeoutCoversTheWayAndTheDelay) {
    struct AckRow {
        int delay;
        int life_time;
        int code;
    };
    for (const AckRow& row : {AckRow{0, 14, 15}, AckRow{13, 14, 15}, AckRow{14, 14, 16},
                              AckRow{15, 14, 16}, AckRow{16, 14, 17}, AckRow{17, 14, 17},
                              AckRow{18, 14, 18}, AckRow{0, 0, 2}, AckRow{1, 0, 2}, AckRow{2, 0, 3},
                              AckRow{31, 31, 31}, AckRow{31, 0, 31}, AckRow{0, 63, 31}}) {
        EXPECT_EQ(ack_timeout_code(static_cast<std::uint8_t>(row.delay),
                                   static_cast<std::uint8_t>(row.life_time)),
                  row.code)
            << row.delay << ", " << row.life_time;
    }
    EXPECT_EQ(ack_timeout_code(14), 15);
    EXPECT_EQ(ack_timeout_code(63), 31);
}

}  // namespace
}  // namespace simverbs::cm
