// FLUSH and ATOMIC WRITE (IBA A19) in both engines.
#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using enum WcStatus;
using enum PacketPosition;

void post_flush(RequesterUnderTest& test, const FlushRequest& flush) {
    test.write(WrOpcode::kFlush, 0);
    SendWqe& wqe = test.effects.sends.back().wqe;
    wqe.segment_count = 0;
    put_flush(flush, wqe);
    test.doorbell();
}

TEST(FlushRequester, SendsOnePacketThatSaysWhatAndHowFar) {
    RequesterUnderTest test;
    post_flush(test, {.length = 1 << 20, .placement = 3, .reach = 1});
    ASSERT_EQ(test.effects.packets.size(), 1U);
    const Packet& packet = test.effects.packets[0];
    EXPECT_EQ(packet.operation().operation, "FLUSH");
    EXPECT_EQ(packet.dma_length, 1U << 20);
    EXPECT_EQ(packet.placement, PlacementType::kGlobal | PlacementType::kPersistent);
    EXPECT_EQ(packet.reach, FlushReach::kRegion);
    EXPECT_EQ(packet.payload.length, 0U);
    test.read_response(100, kOnly, 0);
    ASSERT_THAT(test.statuses(), ElementsAre(kSuccess));
    EXPECT_EQ(test.effects.sent[0].opcode, WcOpcode::kFlush);
    EXPECT_THAT(test.effects.placed, IsEmpty());
}

TEST(FlushRequester, CountsAgainstTheInitiatorDepth) {
    QpAttributes attributes = connected_attributes();
    attributes.max_rd_atomic = 1;
    RequesterUnderTest test(attributes);
    post_flush(test, {.length = 8, .placement = 1});
    post_flush(test, {.length = 8, .placement = 1});
    EXPECT_THAT(test.take_psns(), ElementsAre(100U));
    test.read_response(100, kOnly, 0);
    EXPECT_THAT(test.take_psns(), ElementsAre(101U));
}

TEST(FlushRequester, RefusesWhatHasNoMeaning) {
    for (const FlushRequest& flush :
         {FlushRequest{.length = 8, .placement = 0}, FlushRequest{.length = 8, .placement = 4},
          FlushRequest{.length = 8, .placement = 1, .reach = 2}}) {
        RequesterUnderTest test;
        post_flush(test, flush);
        EXPECT_THAT(test.take_psns(), IsEmpty());
        EXPECT_THAT(test.statuses(), ElementsAre(kLocQpOpErr));
    }
}

TEST(FlushRequester, AnAnswerWithDataIsOfTheWrongLength) {
    RequesterUnderTest test;
    post_flush(test, {.length = 8, .placement = 1});
    test.read_response(100, kOnly, 8);
    EXPECT_THAT(test.statuses(), ElementsAre(kLocLenErr));
}

TEST(AtomicWriteRequester, CarriesItsEightBytesAndWaitsForAnEmptyAnswer) {
    RequesterUnderTest test;
    test.post(WrOpcode::kAtomicWrite, 8);
    ASSERT_EQ(test.effects.packets.size(), 1U);
    EXPECT_EQ(test.effects.packets[0].operation().operation, "ATOMIC_WRITE");
    EXPECT_EQ(test.effects.packets[0].payload.length, 8U);
    EXPECT_EQ(test.effects.packets[0].dma_length, 8U);
    test.ack(100);
    EXPECT_THAT(test.statuses(), IsEmpty()) << "an ACK does not answer it";
    test.read_response(100, kOnly, 0);
    ASSERT_THAT(test.statuses(), ElementsAre(kSuccess));
    EXPECT_EQ(test.effects.sent[0].opcode, WcOpcode::kAtomicWrite);
    EXPECT_EQ(test.effects.sent[0].byte_length, 0U);
}

TEST(AtomicWriteRequester, IsOfEightBytes) {
    RequesterUnderTest test;
    test.post(WrOpcode::kAtomicWrite, 16);
    EXPECT_THAT(test.statuses(), ElementsAre(kLocLenErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kAtomicNotEightBytes);
}

// A packet of eight bytes for `address`.
Packet atomic_write(std::uint32_t psn, std::uint64_t address = kRemote) {
    Packet packet = request(MessageKind::kAtomicWrite, kOnly, psn);
    packet.remote_address = address;
    packet.rkey = RecordingEffects::kGoodKey;
    packet.dma_length = packet.payload.length = 8;
    return packet;
}

Packet flush(std::uint32_t psn, PlacementTypes types, FlushReach reach = FlushReach::kRange) {
    Packet packet = request(MessageKind::kFlush, kOnly, psn);
    packet.remote_address = kRemote;
    packet.rkey = RecordingEffects::kGoodKey;
    packet.dma_length = 4096;
    packet.placement = types;
    packet.reach = reach;
    return packet;
}

QpAttributes flushable() {
    QpAttributes attributes = connected_attributes();
    attributes.access = attributes.access | kFlushRights;
    return attributes;
}

TEST(AtomicWriteResponder, PlacesOnceAndAnswersEveryCopy) {
    ResponderUnderTest test;
    test.give(atomic_write(100));
    EXPECT_THAT(test.take_answers(), ElementsAre("RDMA_READ_RESPONSE_ONLY 100"));
    ASSERT_EQ(test.effects.placed.size(), 1U);
    EXPECT_EQ(test.effects.placed[0].address, kRemote);
    EXPECT_EQ(test.effects.placed[0].length, 8U);
    test.give(atomic_write(100));
    EXPECT_THAT(test.take_answers(), ElementsAre("RDMA_READ_RESPONSE_ONLY 100"));
    EXPECT_EQ(test.effects.placed.size(), 1U);
}

TEST(AtomicWriteResponder, RefusesWhatIsNotAnAlignedWord) {
    ResponderUnderTest misaligned;
    misaligned.give(atomic_write(100, kRemote + 4));
    EXPECT_THAT(misaligned.take_answers(), ElementsAre("NAK 1 at 100"));
    ResponderUnderTest longer;
    Packet packet = atomic_write(100);
    packet.dma_length = packet.payload.length = 16;
    longer.give(packet);
    EXPECT_THAT(longer.take_answers(), ElementsAre("NAK 1 at 100"));
    EXPECT_THAT(longer.effects.placed, IsEmpty());
}

TEST(AtomicWriteResponder, NeedsTheRightToWrite) {
    QpAttributes attributes = connected_attributes();
    attributes.access = attributes.access.without(Access::kRemoteWrite);
    ResponderUnderTest queue_pair(kSpec, attributes);
    queue_pair.give(atomic_write(100));
    EXPECT_THAT(queue_pair.take_answers(), ElementsAre("NAK 1 at 100"));
    ResponderUnderTest region;
    Packet packet = atomic_write(100);
    packet.rkey = RecordingEffects::kReadOnlyKey;
    region.give(packet);
    EXPECT_THAT(region.take_answers(), ElementsAre("NAK 2 at 100"));
}

TEST(FlushResponder, AnswersWithoutData) {
    ResponderUnderTest test(kSpec, flushable());
    test.give(flush(100, PlacementType::kGlobal));
    test.give(flush(101, PlacementType::kPersistent, FlushReach::kRegion));
    test.give(flush(100, PlacementType::kGlobal));
    EXPECT_THAT(test.take_answers(),
                ElementsAre("RDMA_READ_RESPONSE_ONLY 100", "RDMA_READ_RESPONSE_ONLY 101",
                            "RDMA_READ_RESPONSE_ONLY 100"));
    EXPECT_EQ(test.effects.messages_delivered, 2U);
}

TEST(FlushResponder, ReachesTheWholeRegionWhateverTheRangeSays) {
    ResponderUnderTest range(kSpec, flushable());
    Packet beyond = flush(100, PlacementType::kGlobal);
    beyond.remote_address = RecordingEffects::kEnd;
    range.give(beyond);
    EXPECT_THAT(range.take_answers(), ElementsAre("NAK 2 at 100"));
    ResponderUnderTest region(kSpec, flushable());
    beyond.reach = FlushReach::kRegion;
    region.give(beyond);
    EXPECT_THAT(region.take_answers(), ElementsAre("RDMA_READ_RESPONSE_ONLY 100"));
}

TEST(FlushResponder, NeedsTheRightOfEachTypeAndNoOther) {
    QpAttributes global_only = connected_attributes();
    global_only.access = global_only.access | Access::kFlushGlobal;
    ResponderUnderTest test(kSpec, global_only);
    test.give(flush(100, PlacementType::kGlobal));
    test.give(flush(101, PlacementType::kGlobal | PlacementType::kPersistent));
    EXPECT_THAT(test.take_answers(), ElementsAre("RDMA_READ_RESPONSE_ONLY 100", "NAK 1 at 101"));
    for (const FlushReach reach : {FlushReach::kRange, FlushReach::kRegion}) {
        ResponderUnderTest region(kSpec, flushable());
        Packet packet = flush(100, PlacementType::kGlobal, reach);
        packet.rkey = RecordingEffects::kReadOnlyKey;
        region.give(packet);
        EXPECT_THAT(region.take_answers(), ElementsAre("NAK 2 at 100"));
    }
}

TEST(FlushResponder, KnowsNeitherOnADeviceThatDoesNotReportThem) {
    for (const Packet& packet : {flush(100, PlacementType::kGlobal), atomic_write(100)}) {
        ResponderUnderTest test(kConnectX6, flushable());
        test.give(packet);
        EXPECT_THAT(test.take_answers(), ElementsAre("NAK 1 at 100"));
    }
}

}  // namespace
}  // namespace simverbs::test
