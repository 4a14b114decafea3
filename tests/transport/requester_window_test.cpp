#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Payload packets at once when the path MTU is 1024 bytes: 256 KiB worth.
constexpr std::uint32_t kWindow = 256;

std::size_t acks_asked(const std::vector<Packet>& packets) {
    std::size_t count = 0;
    for (const Packet& packet : packets) {
        count += packet.ack_request ? 1U : 0U;
    }
    return count;
}

TEST(RequesterWindow, UnsignaledMessagesLeaveTheAskingToTheLastOfThem) {
    RequesterUnderTest test;
    for (int i = 0; i < 9; ++i) {
        test.write(WrOpcode::kSend, 8, {});
    }
    test.write(WrOpcode::kSend, 8);
    test.doorbell();
    ASSERT_EQ(test.effects.packets.size(), 10U);
    EXPECT_EQ(acks_asked(test.effects.packets), 1U);
    EXPECT_TRUE(test.effects.packets.back().ack_request);
    test.ack(109);
    EXPECT_THAT(test.ids(), ElementsAre(9));
    EXPECT_EQ(test.effects.sent[0].freed_to, 10U);
}

TEST(RequesterWindow, EachSignaledMessageAsks) {
    RequesterUnderTest test;
    for (int i = 0; i < 3; ++i) {
        test.write(WrOpcode::kSend, 8);
    }
    test.doorbell();
    EXPECT_EQ(acks_asked(test.effects.packets), 3U);
}

TEST(RequesterWindow, AnUnsignaledMessageAsksWhenWhatFollowsMayNotStart) {
    RequesterUnderTest test;
    test.write(WrOpcode::kRdmaRead, 8);
    test.write(WrOpcode::kRdmaWrite, 8, {});
    test.write(WrOpcode::kRdmaWrite, 8, SendFlag::kFence);
    test.doorbell();
    ASSERT_EQ(test.effects.packets.size(), 2U);
    EXPECT_TRUE(test.effects.packets[1].ack_request);
}

TEST(RequesterWindow, AnUnsignaledMessageAsksBeforeOneThatWillFail) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 8, {});
    test.write(WrOpcode::kSend, 8, SendFlag::kSignaled, 0xBAD);
    test.doorbell();
    ASSERT_EQ(test.effects.packets.size(), 1U);
    EXPECT_TRUE(test.effects.packets[0].ack_request);
}

TEST(RequesterWindow, ALongMessageStopsAtTheWindowAndGoesOnWithEachAck) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 1024 * kMtu);
    EXPECT_EQ(test.effects.packets.size(), kWindow);
    EXPECT_GE(acks_asked(test.effects.packets), 4U);
    test.effects.take_packets();
    test.ack(100 + 63);
    EXPECT_EQ(test.effects.packets.size(), 64U);
    EXPECT_EQ(test.effects.packets.back().psn.value(), 100 + 64 + kWindow - 1);
}

TEST(RequesterWindow, OneAckAcknowledgesEverythingBeforeIt) {
    RequesterUnderTest test;
    for (int i = 0; i < 5; ++i) {
        test.post(WrOpcode::kSend, 8);
    }
    test.ack(103);
    EXPECT_THAT(test.ids(), ElementsAre(0, 1, 2, 3));
    EXPECT_TRUE(test.effects.armed(EngineTimer::kAcknowledge));
    test.ack(104);
    EXPECT_FALSE(test.effects.armed(EngineTimer::kAcknowledge));
}

TEST(RequesterWindow, AnAckInsideAMessageDoesNotCompleteIt) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 4 * kMtu);
    test.ack(102);
    EXPECT_THAT(test.effects.sent, IsEmpty());
    test.ack(103);
    EXPECT_THAT(test.ids(), ElementsAre(0));
}

TEST(RequesterWindow, AFencedRequestWaitsForReadsAndAtomics) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 8);
    test.post(WrOpcode::kAtomicFetchAndAdd, 8);
    test.take_psns();
    test.post(WrOpcode::kSend, 8, SendFlag::kSignaled | SendFlag::kFence);
    EXPECT_THAT(test.take_psns(), IsEmpty());
    test.read_response(100, PacketPosition::kOnly, 8);
    EXPECT_THAT(test.take_psns(), IsEmpty());
    test.atomic_response(101, 1);
    EXPECT_THAT(test.take_psns(), ElementsAre(102));
}

TEST(RequesterWindow, AFenceDoesNotWaitForSendsAndWrites) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 8);
    test.post(WrOpcode::kSend, 8, SendFlag::kSignaled | SendFlag::kFence);
    EXPECT_THAT(test.take_psns(), ElementsAre(100, 101));
}

TEST(RequesterWindow, NoMoreReadsAndAtomicsAreUnderWayThanMaxRdAtomic) {
    RequesterUnderTest test;
    for (int i = 0; i < 3; ++i) {
        test.post(WrOpcode::kRdmaRead, 8);
        test.post(WrOpcode::kAtomicFetchAndAdd, 8);
    }
    EXPECT_THAT(test.take_psns(), ElementsAre(100, 101, 102, 103));
    test.read_response(100, PacketPosition::kOnly, 8);
    EXPECT_THAT(test.take_psns(), ElementsAre(104));
}

TEST(RequesterWindow, WithMaxRdAtomicZeroAReadFailsLocally) {
    QpAttributes attributes = connected_attributes();
    attributes.max_rd_atomic = 0;
    RequesterUnderTest test(attributes);
    test.post(WrOpcode::kRdmaRead, 8);
    EXPECT_THAT(test.take_psns(), IsEmpty());
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kLocQpOpErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kInitiatorDepthZero);
}

TEST(RequesterWindow, InSqdWhatHasBegunGoesOnAndNothingElseStarts) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 300 * kMtu);
    test.attributes.state = QpState::kSqd;
    test.post(WrOpcode::kSend, 8);
    test.take_psns();
    EXPECT_FALSE(test.requester.drained());
    test.ack(100 + kWindow - 1);
    EXPECT_EQ(test.take_psns().size(), 300 - kWindow);
    test.ack(399);
    EXPECT_TRUE(test.requester.drained());
    EXPECT_THAT(test.take_psns(), IsEmpty());
    test.attributes.state = QpState::kRts;
    test.run();
    EXPECT_THAT(test.take_psns(), ElementsAre(400));
}

TEST(RequesterWindow, InSqdABadRequestDoesNotFailBeforeItsTurnToStart) {
    RequesterUnderTest test;
    test.attributes.state = QpState::kSqd;
    test.post(WrOpcode::kSend, 8, SendFlag::kSignaled, 0xBAD);
    EXPECT_THAT(test.effects.sent, IsEmpty());
    test.attributes.state = QpState::kRts;
    test.run();
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kLocProtErr));
}

TEST(RequesterWindow, AQueuePairThatWaitsForAReceiverHasNotDrained) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.post(WrOpcode::kSend, 8);
    test.attributes.state = QpState::kSqd;
    test.rnr_nak(100, 1);
    test.nak(100, NakCode::kPsnSequenceError);
    EXPECT_FALSE(test.requester.drained());
}

TEST(RequesterWindow, ASlotIndexBeyondTheQueueIsNotBelieved) {
    RequesterUnderTest test(connected_attributes(), 4);
    test.write(WrOpcode::kSend, 8);
    test.requester.post(1000);
    test.run();
    EXPECT_THAT(test.take_psns(), IsEmpty());
    test.doorbell();
    EXPECT_THAT(test.take_psns(), ElementsAre(100));
}

TEST(RequesterWindow, SlotsAreUsedAgainForAsLongAsTheQueueLives) {
    RequesterUnderTest test(connected_attributes(), 4);
    for (std::uint32_t i = 0; i < 100; ++i) {
        test.post(WrOpcode::kSend, 8);
        test.ack(100 + i);
    }
    EXPECT_EQ(test.effects.sent.size(), 100U);
    EXPECT_EQ(test.effects.sent.back().freed_to, 100U);
}

}  // namespace
}  // namespace simverbs::test
