#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum PacketPosition;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kBurst = 16;  // READ response packets given to the transmitter at once

std::size_t drain(ResponderUnderTest& test) {
    std::size_t turns = 0;
    while (test.effects.timers.erase(EngineTimer::kPacing) > 0) {
        test.transmitter_free();
        ++turns;
    }
    return turns;
}

TEST(RcResponderExecutes, APacketIsPlacedBehindThoseBeforeIt) {
    ResponderUnderTest test;
    test.effects.receives.push_back({7,
                                     {{kLocal, 600, RecordingEffects::kGoodKey},
                                      {kLocal + 9000, 5000, RecordingEffects::kGoodKey}}});
    test.send(kFirst, 100, kMtu);
    test.send(kMiddle, 101, kMtu);
    test.send(kLast, 102, 5);
    ASSERT_EQ(test.effects.placed.size(), 3U);
    EXPECT_EQ(test.effects.placed[0].address, kLocal);
    EXPECT_EQ(test.effects.placed[1].address, kLocal + 9000 + (kMtu - 600));
    EXPECT_EQ(test.effects.placed[2].address, kLocal + 9000 + (2 * kMtu - 600));
    EXPECT_EQ(test.effects.received[0].byte_length, 2 * kMtu + 5);
}

TEST(RcResponderExecutes, OnlyARequestThatAsksIsAcknowledged) {
    ResponderUnderTest test;
    Packet packet = request(MessageKind::kWrite, kOnly, 100);
    packet.ack_request = false;
    test.give(packet);
    EXPECT_THAT(test.take_answers(), IsEmpty());
    EXPECT_EQ(test.responder.expected_psn(), Psn(101));
}

TEST(RcResponderExecutes, TheFirstGoodPacketInRtrIsAnnouncedOnce) {
    QpAttributes attributes = connected_attributes();
    attributes.state = QpState::kRtr;
    ResponderUnderTest test(kSpec, attributes);
    test.write(kOnly, 105, 8);
    EXPECT_THAT(test.effects.events, IsEmpty());
    test.write(kOnly, 100, 8);
    test.write(kOnly, 101, 8);
    EXPECT_THAT(test.effects.events, ElementsAre(AsyncEvent::kCommEst));
}

TEST(RcResponderExecutes, AReadIsAnsweredInFullPacketsFromSnapshots) {
    ResponderUnderTest test;
    test.read(100, 2 * kMtu + 1);
    EXPECT_EQ(test.effects.snapshots, 3U);
    EXPECT_EQ(test.effects.packets[2].payload.length, 1U);
    EXPECT_THAT(test.take_answers(),
                ElementsAre("RDMA_READ_RESPONSE_FIRST 100", "RDMA_READ_RESPONSE_MIDDLE 101",
                            "RDMA_READ_RESPONSE_LAST 102"));
    EXPECT_EQ(test.responder.expected_psn(), Psn(103));
}

TEST(RcResponderExecutes, ALongReadIsPacedByTheTransmitter) {
    ResponderUnderTest test;
    test.read(100, 40 * kMtu);
    EXPECT_EQ(test.effects.packets.size(), kBurst);
    EXPECT_EQ(drain(test), 2U);
    EXPECT_EQ(test.effects.packets.size(), 40U);
}

TEST(RcResponderExecutes, AnswersKeepTheOrderOfTheRequests) {
    ResponderUnderTest test;
    test.read(100, 17 * kMtu);
    test.write(kOnly, 117, 8);
    test.write(kOnly, 118, 8);
    test.fetch_add(119, 1);
    test.write(kOnly, 120, 8);
    drain(test);
    const std::vector<std::string> answers = test.take_answers();
    ASSERT_EQ(answers.size(), 20U) << "the two ACKs behind the READ are one";
    EXPECT_EQ(answers[16], "RDMA_READ_RESPONSE_LAST 116");
    EXPECT_EQ(answers[17], "ACK 118");
    EXPECT_EQ(answers[18], "ATOMIC_ACKNOWLEDGE 119");
    EXPECT_EQ(answers[19], "ACK 120");
}

// The refusal is the last answer: what was asked before it is answered first.
TEST(RcResponderExecutes, ARefusalWaitsForTheReadBeforeIt) {
    ResponderUnderTest test;
    test.read(100, 40 * kMtu);
    test.write(kOnly, 140, 8, 0, Trailer::kNone, 0xBAD);
    EXPECT_THAT(test.effects.failures, IsEmpty());
    test.write(kOnly, 141, 8);
    drain(test);
    const std::vector<std::string> answers = test.take_answers();
    ASSERT_EQ(answers.size(), 41U);
    EXPECT_EQ(answers[39], "RDMA_READ_RESPONSE_LAST 139");
    EXPECT_EQ(answers[40], "NAK 2 at 140");
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kRemoteKey));
    EXPECT_THAT(test.effects.placed, IsEmpty());
}

TEST(RcResponderExecutes, AReadWhoseMemoryGoesAwayEndsInARefusal) {
    ResponderUnderTest test;
    test.read(100, 40 * kMtu);
    test.take_answers();
    test.effects.revoke(RecordingEffects::kGoodKey);
    drain(test);
    EXPECT_THAT(test.take_answers(), ElementsAre("NAK 2 at 116"));
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kRemoteKey));
    EXPECT_THAT(test.effects.events, ElementsAre(AsyncEvent::kQpAccessErr));
}

TEST(RcResponderExecutes, AReadOfUnmappedMemoryIsARefusal) {
    ResponderUnderTest test;
    test.effects.snapshot_outcome = CopyOutcome::kSourceFault;
    test.read(100, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("NAK 2 at 100"));
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kRemoteRange));
}

TEST(RcResponderExecutes, AtomicsReturnWhatWasThere) {
    ResponderUnderTest test;
    test.effects.words[kRemote] = 10;
    test.fetch_add(100, 5);
    test.compare_swap(101, 15, 99);
    test.compare_swap(102, 15, 1);
    EXPECT_EQ(test.effects.packets[0].compare, 10U);
    EXPECT_EQ(test.effects.packets[1].compare, 15U);
    EXPECT_EQ(test.effects.packets[2].compare, 99U);
    EXPECT_EQ(test.effects.words[kRemote], 99U);
}

TEST(RcResponderExecutes, UnmappedDestinationsAreProtectionErrors) {
    ResponderUnderTest write;
    write.effects.place_outcome = CopyOutcome::kDestinationFault;
    write.write(kOnly, 100, 8);
    EXPECT_THAT(write.effects.failures, ElementsAre(FaultCause::kRemoteRange));

    ResponderUnderTest send;
    send.effects.place_outcome = CopyOutcome::kDestinationFault;
    send.post_receive(7, 8);
    send.send(kOnly, 100, 8);
    EXPECT_THAT(send.effects.failures, ElementsAre(FaultCause::kReceiveRange));
    EXPECT_EQ(send.effects.received[0].status, WcStatus::kLocProtErr);
}

TEST(RcResponderExecutes, AnUnreadableSourceIsTheSendersFault) {
    ResponderUnderTest test;
    test.effects.place_outcome = CopyOutcome::kSourceFault;
    test.write(kOnly, 100, 8);
    EXPECT_THAT(test.effects.source_faults, ElementsAre(Psn(100)));
    EXPECT_THAT(test.take_answers(), IsEmpty());
    EXPECT_THAT(test.effects.failures, IsEmpty());
}

TEST(RcResponderDuplicates, ASendSeenBeforeIsAcknowledgedAndNotTakenAgain) {
    ResponderUnderTest test;
    test.post_receive(7, 8);
    test.post_receive(8, 8);
    test.send(kOnly, 100, 8);
    test.write(kOnly, 101, 8);
    test.take_answers();
    test.send(kOnly, 100, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 101")) << "as far as it has come";
    EXPECT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.receives.size(), 1U);
    EXPECT_EQ(test.effects.placed.size(), 2U);
}

TEST(RcResponderDuplicates, AReadIsAnsweredAgainFromWhereItIsAsked) {
    ResponderUnderTest test;
    test.read(100, 4 * kMtu);
    test.write(kOnly, 104, 8);
    test.take_answers();
    Packet again = request(MessageKind::kRead, kOnly, 102);
    again.remote_address = kRemote + 2UL * kMtu;
    again.dma_length = 2 * kMtu;
    test.give(again);
    EXPECT_THAT(test.take_answers(),
                ElementsAre("RDMA_READ_RESPONSE_FIRST 102", "RDMA_READ_RESPONSE_LAST 103"));
    EXPECT_EQ(test.responder.expected_psn(), Psn(105));
}

TEST(RcResponderDuplicates, AReadAskedForAgainUnderWayReplacesItsAnswer) {
    ResponderUnderTest test;
    test.read(100, 40 * kMtu);
    Packet again = request(MessageKind::kRead, kOnly, 110);
    again.remote_address = kRemote + 10UL * kMtu;
    again.dma_length = 30 * kMtu;
    test.give(again);
    drain(test);
    EXPECT_EQ(test.effects.packets.size(), kBurst + 30);
}

TEST(RcResponderDuplicates, ADoubledReadLeavesTheAnswersToLaterOnes) {
    ResponderUnderTest test;
    test.read(100, 100 * kMtu);
    test.read(200, 8);
    test.read(201, 2 * kMtu);
    const std::size_t given = test.effects.packets.size();
    ASSERT_LT(given, 100U);
    test.read(100, 100 * kMtu);
    test.read(200, 8);
    drain(test);
    EXPECT_EQ(test.effects.packets.size(), given + 100 + 3);
    EXPECT_EQ(test.take_answers().back(), "RDMA_READ_RESPONSE_LAST 202");
}

TEST(RcResponderDuplicates, AReadUnderWayThatIsDoubledKeepsItsRoom) {
    QpAttributes attributes = connected_attributes();
    attributes.max_dest_rd_atomic = 1;
    ResponderUnderTest test(kSpec, attributes);
    test.read(100, 40 * kMtu);
    test.read(100, 40 * kMtu);
    test.read(140, 8);
    drain(test);
    EXPECT_EQ(test.effects.failures.size(), 1U);
}

TEST(RcResponderDuplicates, AnAnswerGivenAgainTakesNoRoomFromANewRead) {
    QpAttributes attributes = connected_attributes();
    attributes.max_dest_rd_atomic = 1;
    ResponderUnderTest test(kSpec, attributes);
    test.read(100, 40 * kMtu);
    drain(test);
    test.read(100, 40 * kMtu);  // the requester's patience was shorter than the way back
    test.read(140, 8);
    drain(test);
    EXPECT_THAT(test.effects.failures, IsEmpty());
    EXPECT_EQ(test.take_answers().back(), "RDMA_READ_RESPONSE_ONLY 140");
}

TEST(RcResponderDuplicates, AnAtomicReplaysItsValueAndIsNotExecutedAgain) {
    ResponderUnderTest test;
    test.effects.words[kRemote] = 10;
    test.fetch_add(100, 5);
    test.fetch_add(101, 5);
    test.take_answers();
    test.fetch_add(100, 5);
    ASSERT_EQ(test.effects.packets.size(), 1U);
    EXPECT_EQ(test.effects.packets[0].compare, 10U);
    EXPECT_EQ(test.effects.words[kRemote], 20U);
}

TEST(RcResponderDuplicates, AnAtomicOlderThanWhatIsKeptGetsNoAnswer) {
    QpAttributes attributes = connected_attributes();
    attributes.max_dest_rd_atomic = 2;
    ResponderUnderTest test(kSpec, attributes);
    for (std::uint32_t i = 0; i < 3; ++i) {
        test.fetch_add(100 + i, 1);
    }
    test.take_answers();
    test.fetch_add(100, 1);
    EXPECT_THAT(test.take_answers(), IsEmpty());
    test.fetch_add(101, 1);
    EXPECT_THAT(test.take_answers(), ElementsAre("ATOMIC_ACKNOWLEDGE 101"));
    EXPECT_EQ(test.effects.words[kRemote], 3U);
}

TEST(RcResponderDuplicates, AReadWhereAnAtomicWasGetsNoAnswer) {
    ResponderUnderTest test;
    test.fetch_add(100, 1);
    test.take_answers();
    test.read(100, 8);
    EXPECT_THAT(test.take_answers(), IsEmpty());
}

TEST(RcResponderDuplicates, PsnsWrapBetweenOldAndNew) {
    QpAttributes attributes = connected_attributes();
    attributes.rq_psn = Psn(0xFFFFFF);
    ResponderUnderTest test(kSpec, attributes);
    test.write(kOnly, 0xFFFFFF, 8);
    test.write(kOnly, 0, 8);
    test.write(kOnly, 0xFFFFFF, 8);
    test.write(kOnly, 2, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 16777215", "ACK 0", "ACK 0", "NAK 0 at 1"));
}

TEST(RcResponderFlush, AReceiveInUseIsFlushed) {
    ResponderUnderTest test;
    test.post_receive(7, 10 * kMtu);
    test.send(kFirst, 100, kMtu);
    test.responder.flush();
    ASSERT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.received[0].status, WcStatus::kWrFlushErr);
    EXPECT_EQ(test.effects.received[0].wr_id, 7U);
    EXPECT_EQ(test.effects.received[0].freed_to, 1U);
}

// A rule: what was executed and could not be completed is not acknowledged.
TEST(RcResponderFlush, AMessageWhoseCompletionFailsIsNeverAcknowledged) {
    ResponderUnderTest test;
    test.post_receive(7, 8);
    test.effects.overruns = true;
    test.send(kOnly, 100, 8);
    EXPECT_EQ(test.effects.placed.size(), 1U);
    EXPECT_EQ(test.effects.received.size(), 1U);
    EXPECT_THAT(test.take_answers(), IsEmpty());
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kCqOverrun));
}

}  // namespace
}  // namespace simverbs::test
