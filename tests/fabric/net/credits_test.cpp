#include "fabric/net/credits.hpp"

#include <gtest/gtest.h>

#include "fabric/net/vl_arbitration.hpp"

namespace fabric {
namespace {

TEST(VlCredits, CountBlocksOf64Bytes) {
    EXPECT_EQ(blocks_of(0), 0U);
    EXPECT_EQ(blocks_of(1), 1U);
    EXPECT_EQ(blocks_of(64), 1U);
    EXPECT_EQ(blocks_of(65), 2U);
    EXPECT_EQ(kMaxBufferBytes, 131'072U);
}

TEST(VlCredits, AreThereWhenTheirReturnHasArrived) {
    VlCredits credits(4);
    EXPECT_TRUE(credits.suffice(4, kSimStart));
    EXPECT_FALSE(credits.suffice(5, kSimStart));
    credits.take(4, kSimStart);
    EXPECT_EQ(credits.when(1, kSimStart), SimTime::max());
    credits.add_return(1, kSimStart + 10_ns, kSimStart);
    credits.add_return(2, kSimStart + 20_ns, kSimStart);
    EXPECT_EQ(credits.when(1, kSimStart), kSimStart + 10_ns);
    EXPECT_EQ(credits.when(2, kSimStart), kSimStart + 20_ns);
    EXPECT_EQ(credits.when(3, kSimStart + 25_ns), kSimStart + 25_ns);
    EXPECT_EQ(credits.when(4, kSimStart), SimTime::max());
    EXPECT_FALSE(credits.suffice(1, kSimStart + 9'999_ps));
    EXPECT_TRUE(credits.suffice(1, kSimStart + 10_ns));
    credits.take(1, kSimStart + 10_ns);
    EXPECT_FALSE(credits.suffice(1, kSimStart + 19_ns));
    EXPECT_EQ(credits.unused(), 2U);
}

TEST(VlCredits, ReturnsCountByTheirTimeNotByTheirOrder) {
    VlCredits credits(3);
    credits.take(3, kSimStart);
    credits.add_return(1, kSimStart + 30_ns, kSimStart);
    credits.add_return(1, kSimStart + 10_ns, kSimStart);
    credits.add_return(1, kSimStart + 20_ns, kSimStart);
    EXPECT_EQ(credits.when(1, kSimStart), kSimStart + 10_ns);
    EXPECT_EQ(credits.when(2, kSimStart), kSimStart + 20_ns);
    EXPECT_EQ(credits.when(3, kSimStart), kSimStart + 30_ns);
}

TEST(VlCredits, NoneIsLostOrMadeByManyTurns) {
    VlCredits credits(64);
    SimTime now = kSimStart;
    for (int turn = 0; turn < 1000; ++turn) {
        now = credits.when(48, now);
        ASSERT_NE(now, SimTime::max());
        credits.take(48, now);
        for (int part = 0; part < 48; ++part) {
            credits.add_return(1, now + SimDuration(1 + (part * 37) % 48), now);
        }
        ASSERT_EQ(credits.unused(), 64U);
    }
}

// Credits ahead of their time are taken back: those that would have come in between is not there
// yet.
TEST(VlCredits, GoBackWithTheFramesThatTookThem) {
    VlCredits credits(4);
    for (int frame = 0; frame < 4; ++frame) {
        const SimTime start = kSimStart + frame * 10_ns;
        ASSERT_TRUE(credits.suffice(2, start));
        credits.take(2, start);
        credits.add_return(2, start + 15_ns, kSimStart);
    }
    EXPECT_EQ(credits.returned_after(kSimStart + 15_ns), 6U);
    credits.undo(2, kSimStart + 45_ns);
    credits.undo(2, kSimStart + 35_ns);
    credits.rewind(kSimStart + 1_ns);
    EXPECT_EQ(credits.when(2, kSimStart + 1_ns), kSimStart + 15_ns);
    EXPECT_EQ(credits.when(4, kSimStart + 1_ns), kSimStart + 25_ns);
    EXPECT_EQ(credits.unused(), 4U);
}

std::string turns(VlArbiter& arbiter, const VlArbitrationTables& tables, std::uint32_t ready,
                  int count, std::uint32_t blocks = 1) {
    std::string chosen;
    for (int i = 0; i < count; ++i) {
        chosen += static_cast<char>(
            '0' + arbiter.choose(tables, ready, [blocks](std::uint8_t) { return blocks; }));
    }
    return chosen;
}

TEST(VlArbiter, WithoutTablesLanesTakeTurns) {
    VlArbiter arbiter;
    EXPECT_EQ(turns(arbiter, {}, 0b1011, 6), "013013");
    EXPECT_EQ(turns(arbiter, {}, 0b0010, 2), "11");
}

TEST(VlArbiter, WeightsAreBlocksOfATurn) {
    VlArbiter arbiter;
    const VlArbitrationTables tables{.high = {}, .low = {{0, 3}, {1, 1}}, .high_limit = 0};
    EXPECT_EQ(turns(arbiter, tables, 0b11, 8), "00010001");
    EXPECT_EQ(turns(arbiter, tables, 0b10, 2), "11");
}

// The last packet of a turn may be longer than what is left of the weight.
TEST(VlArbiter, APacketMayOverdrawItsTurn) {
    VlArbiter arbiter;
    const VlArbitrationTables tables{.high = {}, .low = {{0, 3}, {1, 1}}, .high_limit = 0};
    EXPECT_EQ(turns(arbiter, tables, 0b11, 6, 2), "001001");
}

TEST(VlArbiter, AnEntryWithoutWeightHasNoTurn) {
    VlArbiter arbiter;
    const VlArbitrationTables tables{.high = {}, .low = {{0, 0}, {1, 1}}, .high_limit = 0};
    EXPECT_EQ(turns(arbiter, tables, 0b11, 3), "111");
}

TEST(VlArbiter, HighPriorityGoesFirstUpToItsLimit) {
    VlArbitrationTables tables{.high = {{1, 255}}, .low = {{0, 1}}, .high_limit = 0};
    VlArbiter one_packet;
    EXPECT_EQ(turns(one_packet, tables, 0b11, 4), "1010");
    tables.high_limit = 1;  // 4096 bytes, 64 blocks
    VlArbiter four_kilobytes;
    EXPECT_EQ(turns(four_kilobytes, tables, 0b11, 5, 32), "11011");
    tables.high_limit = VlArbitrationTables::kNoHighLimit;
    VlArbiter unlimited;
    EXPECT_EQ(turns(unlimited, tables, 0b11, 5, 64), "11111");
    EXPECT_EQ(turns(unlimited, tables, 0b01, 1), "0");
}

}  // namespace
}  // namespace fabric
