#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum PacketPosition;
using testing::ElementsAre;
using testing::IsEmpty;
using Event = AsyncEvent;

// Compares what a refused request leaves behind with the row of its cause.
void expect_refused(ResponderUnderTest& test, FaultCause cause, std::uint32_t psn,
                    const Personality& personality = kSpec) {
    const CompletionFault row = consequences(personality, cause);
    SCOPED_TRACE(row.name);
    const auto code = nak_code(row.wire);
    ASSERT_TRUE(code.has_value());
    const std::string nak = "NAK " + std::to_string(static_cast<int>(*code)) + " at ";
    EXPECT_THAT(test.take_answers(), ElementsAre(nak + std::to_string(psn)));
    EXPECT_THAT(test.effects.failures, ElementsAre(cause));
    EXPECT_EQ(test.attributes.state, QpState::kErr);
    if (row.responder.status) {
        ASSERT_FALSE(test.effects.received.empty());
        EXPECT_EQ(test.effects.received[0].status, *row.responder.status);
        EXPECT_EQ(test.effects.received[0].cause, cause);
    } else {
        for (const ReceiveCompletion& completion : test.effects.received) {
            EXPECT_EQ(completion.status, WcStatus::kWrFlushErr);
        }
    }
    EXPECT_EQ(test.effects.events.empty(), !row.responder.event.has_value());
    if (row.responder.event) {
        EXPECT_THAT(test.effects.events, ElementsAre(*row.responder.event));
    }
}

TEST(RcResponder, NaksAGapOnceThenStaysSilent) {
    ResponderUnderTest test;
    test.write(kOnly, 102, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("NAK 0 at 100"));
    test.write(kOnly, 103, 8);
    test.write(kOnly, 101, 8);
    EXPECT_THAT(test.take_answers(), IsEmpty());
    EXPECT_THAT(test.effects.placed, IsEmpty());
    test.write(kOnly, 100, 8);
    test.write(kOnly, 103, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100", "NAK 0 at 101"));
}

TEST(RcResponder, WithoutAReceiveAnswersRnrAndTakesTheRetry) {
    ResponderUnderTest test;
    test.send(kOnly, 100, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("RNR NAK 12 at 100"));
    test.send(kOnly, 101, 8);
    EXPECT_THAT(test.take_answers(), IsEmpty()) << "what follows is no gap to report";
    test.post_receive(7, 8);
    test.send(kOnly, 100, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100"));
    ASSERT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.received[0].wr_id, 7U);
}

TEST(RcResponder, AWriteWithImmediateNeedsItsReceiveOnlyAtTheEnd) {
    ResponderUnderTest test;
    test.write(kFirst, 100, kMtu, 2 * kMtu);
    test.write(kLast, 101, kMtu, 0, Trailer::kImmediate);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100", "RNR NAK 12 at 101"));
    test.post_receive(7, 0);
    test.write(kLast, 101, kMtu, 0, Trailer::kImmediate);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 101"));
    ASSERT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.received[0].byte_length, 2 * kMtu);
    EXPECT_TRUE(test.effects.received[0].has_immediate);
    EXPECT_EQ(test.effects.received[0].opcode, WcOpcode::kRecvRdmaWithImm);
}

TEST(RcResponder, RefusesAMessageThatDoesNotFitItsReceive) {
    ResponderUnderTest test;
    test.post_receive(7, 8);
    test.send(kOnly, 100, 9);
    expect_refused(test, FaultCause::kReceiveTooSmall, 100);
    EXPECT_THAT(test.effects.placed, IsEmpty());
}

TEST(RcResponder, FindsOutThatAReceiveIsTooSmallAtThePacketThatOverflowsIt) {
    ResponderUnderTest test;
    test.post_receive(7, kMtu + 10);
    test.send(kFirst, 100, kMtu);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100"));
    test.send(kLast, 101, 11);
    expect_refused(test, FaultCause::kReceiveTooSmall, 101);
    EXPECT_EQ(test.effects.placed.size(), 1U);
}

TEST(RcResponder, AMessageExactlyAsLongAsItsReceiveFits) {
    ResponderUnderTest test;
    test.post_receive(7, kMtu + 10);
    test.send(kFirst, 100, kMtu);
    test.send(kLast, 101, 10);
    ASSERT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.received[0].byte_length, kMtu + 10);
}

TEST(RcResponder, RefusesPayloadsThatAreNotThePathMtu) {
    struct Case {
        PacketPosition position;
        std::uint32_t length;
    };
    for (const Case& row : std::vector<Case>{
             {kFirst, kMtu - 1}, {kFirst, kMtu + 1}, {kFirst, 0}, {kOnly, kMtu + 1}}) {
        ResponderUnderTest test;
        test.write(row.position, 100, row.length, 4 * kMtu);
        expect_refused(test, FaultCause::kPayloadNotMtu, 100);
    }
}

TEST(RcResponder, RefusesMiddleAndLastPacketsOfAnotherLength) {
    for (const auto& [position, length] : std::vector<std::pair<PacketPosition, std::uint32_t>>{
             {kMiddle, kMtu - 1}, {kLast, kMtu + 1}, {kLast, 0}}) {
        ResponderUnderTest test;
        test.post_receive(7, 10 * kMtu);
        test.send(kFirst, 100, kMtu);
        test.take_answers();
        test.send(position, 101, length);
        expect_refused(test, FaultCause::kPayloadNotMtu, 101);
    }
}

TEST(RcResponder, RefusesAWriteThatIsNotAsLongAsItAnnounced) {
    ResponderUnderTest shorter;
    shorter.write(kFirst, 100, kMtu, 3 * kMtu);
    shorter.take_answers();
    shorter.write(kLast, 101, kMtu);
    expect_refused(shorter, FaultCause::kPayloadNotMtu, 101);

    ResponderUnderTest longer;
    longer.write(kFirst, 100, kMtu, kMtu + 1);
    longer.take_answers();
    longer.write(kMiddle, 101, kMtu);
    expect_refused(longer, FaultCause::kPayloadNotMtu, 101);
}

TEST(RcResponder, RefusesOpcodesThatMakeNoMessage) {
    for (const PacketPosition position : {kMiddle, kLast}) {
        ResponderUnderTest test;
        test.write(position, 100, kMtu);
        expect_refused(test, FaultCause::kOpcodeOutOfOrder, 100);
    }
    for (const PacketPosition position : {kFirst, kOnly}) {
        ResponderUnderTest test;
        test.write(kFirst, 100, kMtu, 3 * kMtu);
        test.take_answers();
        test.write(position, 101, kMtu, 3 * kMtu);
        expect_refused(test, FaultCause::kOpcodeOutOfOrder, 101);
    }
    ResponderUnderTest mixed;
    mixed.write(kFirst, 100, kMtu, 3 * kMtu);
    mixed.take_answers();
    mixed.send(kLast, 101, 8);
    expect_refused(mixed, FaultCause::kOpcodeOutOfOrder, 101);
}

TEST(RcResponder, RefusesOpcodesThatItDoesNotKnow) {
    for (const std::uint8_t opcode : std::initializer_list<std::uint8_t>{0x18, 0x1F, 0x15}) {
        ResponderUnderTest test;
        Packet packet = request(MessageKind::kSend, kOnly, 100);
        packet.opcode = opcode;
        test.give(packet);
        EXPECT_THAT(test.take_answers(), ElementsAre("NAK 1 at 100")) << int{opcode};
        EXPECT_THAT(test.effects.events, ElementsAre(Event::kQpReqErr));
    }
}

TEST(RcResponder, RefusesWhatTheQueuePairDoesNotAllow) {
    QpAttributes attributes = connected_attributes();
    attributes.access = Access::kLocalWrite;
    const auto refused = [&](auto&& ask) {
        ResponderUnderTest test(kSpec, attributes);
        ask(test);
        expect_refused(test, FaultCause::kQpLacksRight, 100);
    };
    refused([](ResponderUnderTest& test) { test.write(kOnly, 100, 8); });
    refused([](ResponderUnderTest& test) { test.write(kOnly, 100, 0); });
    refused([](ResponderUnderTest& test) { test.read(100, 8); });
    refused([](ResponderUnderTest& test) { test.fetch_add(100, 1); });
    refused([](ResponderUnderTest& test) { test.compare_swap(100, 1, 2); });
}

TEST(RcResponder, SendsNeedNoRightOfTheQueuePair) {
    QpAttributes attributes = connected_attributes();
    attributes.access = {};
    ResponderUnderTest test(kSpec, attributes);
    test.post_receive(7, 8);
    test.send(kOnly, 100, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100"));
}

TEST(RcResponder, RefusesAMisalignedAtomic) {
    ResponderUnderTest test;
    test.fetch_add(100, 1, kRemote + 4);
    expect_refused(test, FaultCause::kAtomicMisaligned, 100);
    EXPECT_TRUE(test.effects.words.empty());
}

TEST(RcResponder, RefusesKeyRangeRightAndProtectionDomain) {
    struct Case {
        FaultCause cause;
        std::uint32_t rkey;
        std::uint64_t address;
    };
    for (const Case& row : std::vector<Case>{
             {FaultCause::kRemoteKey, 0xBAD, kRemote},
             {FaultCause::kRemoteOtherPd, RecordingEffects::kOtherPdKey, kRemote},
             {FaultCause::kRemoteRight, RecordingEffects::kReadOnlyKey, kRemote},
             {FaultCause::kRemoteRange, RecordingEffects::kGoodKey, RecordingEffects::kEnd}}) {
        for (const MessageKind kind :
             {MessageKind::kWrite, MessageKind::kRead, MessageKind::kFetchAdd}) {
            ResponderUnderTest test;
            Packet packet = request(kind, kOnly, 100);
            packet.rkey = row.rkey;
            packet.remote_address = row.address;
            packet.dma_length = 8;
            packet.payload.length = kind == MessageKind::kWrite ? 8 : 0;
            test.give(packet);
            expect_refused(test, row.cause, 100);
            EXPECT_THAT(test.effects.placed, IsEmpty());
        }
    }
}

TEST(RcResponder, ChecksNoKeyForNoBytes) {
    ResponderUnderTest test;
    test.write(kOnly, 100, 0, 0, Trailer::kNone, 0xBAD);
    test.read(101, 0, 0xBAD);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100", "RDMA_READ_RESPONSE_ONLY 101"));
}

TEST(RcResponder, AReceiveItMayNotFillFailsOnBothSides) {
    struct Case {
        FaultCause cause;
        std::uint32_t lkey;
        std::uint64_t address;
    };
    for (const Case& row : std::vector<Case>{
             {FaultCause::kReceiveKey, 0xBAD, kLocal},
             {FaultCause::kReceiveKey, RecordingEffects::kOtherPdKey, kLocal},
             {FaultCause::kReceiveRight, RecordingEffects::kReadOnlyKey, kLocal},
             {FaultCause::kReceiveRange, RecordingEffects::kGoodKey, RecordingEffects::kEnd}}) {
        ResponderUnderTest test;
        test.effects.receives.push_back({7, {{row.address, 8, row.lkey}}});
        test.send(kOnly, 100, 8);
        expect_refused(test, row.cause, 100);
    }
}

TEST(RcResponder, AReceiveOfMoreSegmentsThanItsSlotHoldsIsMalformed) {
    ResponderUnderTest test;
    test.effects.receives.push_back(
        {7, std::vector<Segment>(5, {kLocal, 8, RecordingEffects::kGoodKey})});
    test.send(kOnly, 100, 8);
    expect_refused(test, FaultCause::kMalformedReceive, 100);
}

TEST(RcResponder, AWriteWithImmediateRefusedAtItsLastPacketFailsTheReceive) {
    ResponderUnderTest test;
    test.post_receive(7, 8);
    test.write(kOnly, 100, 8, 0, Trailer::kImmediate, 0xBAD);
    expect_refused(test, FaultCause::kImmediateWriteRefused, 100);
}

TEST(RcResponder, AWriteWithImmediateRefusedEarlierTakesNoReceive) {
    ResponderUnderTest test;
    test.post_receive(7, 8);
    test.write(kFirst, 100, kMtu, 2 * kMtu, Trailer::kNone, 0xBAD);
    expect_refused(test, FaultCause::kRemoteKey, 100);
    EXPECT_EQ(test.effects.receives.size(), 1U);
}

TEST(RcResponder, RefusesMoreReadsThanItHasRoomFor) {
    QpAttributes attributes = connected_attributes();
    attributes.max_dest_rd_atomic = 2;
    ResponderUnderTest test(kSpec, attributes);
    test.read(100, 64 * kMtu);
    test.read(164, 8);
    test.take_answers();
    test.read(165, 8);
    for (int i = 0; i < 8; ++i) {
        test.transmitter_free();
    }
    const std::vector<std::string> answers = test.take_answers();
    EXPECT_EQ(answers.back(), "NAK 1 at 165");
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kTooManyReads));
    EXPECT_THAT(test.effects.events, ElementsAre(Event::kQpAccessErr));
}

TEST(RcResponder, WithMaxDestRdAtomicZeroRefusesEveryRead) {
    QpAttributes attributes = connected_attributes();
    attributes.max_dest_rd_atomic = 0;
    ResponderUnderTest test(kSpec, attributes);
    test.read(100, 8);
    expect_refused(test, FaultCause::kTooManyReads, 100);
}

// A request with two faults shows which check comes first.
TEST(RcResponder, ThePersonalityDecidesWhichOfTwoFaultsIsFound) {
    const auto refuse = [](const Personality& personality) {
        ResponderUnderTest test(personality);
        test.write(kOnly, 100, kMtu + 1, 0, Trailer::kNone, 0xBAD);
        return test.effects.failures;
    };
    EXPECT_THAT(refuse(kSpec), ElementsAre(FaultCause::kPayloadNotMtu));
    EXPECT_THAT(refuse(kConnectX6), ElementsAre(FaultCause::kRemoteKey));
}

TEST(RcResponder, TheQueuePairsRightIsCheckedBeforeTheKeyByBothPersonalities) {
    QpAttributes attributes = connected_attributes();
    attributes.access = {};
    for (const Personality* personality : kPersonalities) {
        ResponderUnderTest test(*personality, attributes);
        test.write(kOnly, 100, 8, 0, Trailer::kNone, 0xBAD);
        EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kQpLacksRight));
    }
}

TEST(RcResponder, FillsTheReceiveOfThisMessageWhateverTheOrderOfChecks) {
    for (const Personality* personality : kPersonalities) {
        SCOPED_TRACE(personality->name);
        ResponderUnderTest test(*personality);
        test.effects.receives.push_back({7, {{kLocal, 100, RecordingEffects::kGoodKey}}});
        test.effects.receives.push_back({8, {{kLocal + 4096, 100, RecordingEffects::kGoodKey}}});
        test.send(kOnly, 100, 8);
        test.send(kOnly, 101, 8);
        EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100", "ACK 101"));
        ASSERT_EQ(test.effects.placed.size(), 2U);
        EXPECT_EQ(test.effects.placed[0].address, kLocal);
        EXPECT_EQ(test.effects.placed[1].address, kLocal + 4096);
    }
}

}  // namespace
}  // namespace simverbs::test
