// FLUSH and ATOMIC WRITE from end to end, with the rights of real keys.
#include <gtest/gtest.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

constexpr AccessRights kFlushable = kAllRights | kFlushRights;

Send flush_of_range(Pair& pair, const Region& region, std::uint64_t wr_id, std::uint32_t length) {
    return {.wr_id = wr_id,
            .opcode = WrOpcode::kFlush,
            .remote_address = pair.b.address(0),
            .rkey = region.rkey,
            .flush = {.length = length, .placement = 3, .reach = 0}};
}

TEST(PlacementOperation, AFlushCompletesBehindTheWritesBeforeIt) {
    Pair pair({.qp_rights = kFlushable});
    const Region region = pair.b.register_memory(pair.b.memory.data(), 65536, kFlushable);
    pair.a.fill(0, 16384, 5);
    Send write = write_of(pair.a, pair.b, 1, 0, 16384);
    write.flags = {};
    pair.drop_nth(pair.a, 3);
    const std::vector<Send> both = {write, flush_of_range(pair, region, 2, 16384)};
    pair.a.qp.post(both);
    pair.drive_until_sent(pair.a);
    const std::vector<Cqe> sent = pair.a.send_cq.poll();
    ASSERT_EQ(statuses(sent), std::vector{WcStatus::kSuccess});
    EXPECT_EQ(sent[0].wr_id, 2U);
    EXPECT_EQ(sent[0].opcode, static_cast<std::uint32_t>(WcOpcode::kFlush));
    EXPECT_EQ(pair.b.bytes(0, 16384), pair.a.bytes(0, 16384));
}

TEST(PlacementOperation, AFlushIsRefusedByRangeAndByRight) {
    for (const bool range : {true, false}) {
        Pair pair({.qp_rights = kFlushable});
        const Region region =
            pair.b.register_memory(pair.b.memory.data(), 4096, range ? kFlushable : kAllRights);
        pair.a.qp.post(flush_of_range(pair, region, 1, range ? 4097 : 4096));
        pair.drive();
        EXPECT_EQ(statuses(pair.a.send_cq.poll()), std::vector{WcStatus::kRemAccessErr});
        EXPECT_EQ(pair.b.take_events(), std::vector{AsyncEvent::kQpAccessErr});
    }
}

TEST(PlacementOperation, AnAtomicWriteLandsOnceThoughItsAnswerIsLost) {
    Pair pair;
    pair.a.set_word(0, 0x1122334455667788);
    pair.drop_nth(pair.b, 1);
    Send write = write_of(pair.a, pair.b, 1, 0, 8);
    write.opcode = WrOpcode::kAtomicWrite;
    pair.a.qp.post(write);
    pair.drive_until_sent(pair.a);
    EXPECT_EQ(statuses(pair.a.send_cq.poll()), std::vector{WcStatus::kSuccess});
    EXPECT_EQ(pair.b.word(0), 0x1122334455667788U);
}

TEST(PlacementOperation, ADeviceWithoutThemRefusesToSendThem) {
    for (const WrOpcode opcode : {WrOpcode::kFlush, WrOpcode::kAtomicWrite}) {
        Pair pair({.personality = "connectx6"});
        Send send = write_of(pair.a, pair.b, 1, 0, 8);
        send.opcode = opcode;
        pair.a.qp.post(send);
        pair.drive();
        EXPECT_EQ(statuses(pair.a.send_cq.poll()), std::vector{WcStatus::kLocQpOpErr});
    }
}

}  // namespace
}  // namespace simverbs::test
