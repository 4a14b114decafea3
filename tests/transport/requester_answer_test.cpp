#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum WcStatus;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(RequesterAnswer, EachNakBecomesItsStatusAndNamesItsCause) {
    const std::vector<std::pair<NakCode, WcStatus>> statuses = {
        {NakCode::kInvalidRequest, kRemInvReqErr},
        {NakCode::kRemoteAccessError, kRemAccessErr},
        {NakCode::kRemoteOperationalError, kRemOpErr},
        {NakCode::kInvalidRdRequest, kRemInvRdReqErr}};
    for (const auto& [code, status] : statuses) {
        RequesterUnderTest test;
        test.post(WrOpcode::kSend, 8);
        test.post(WrOpcode::kRdmaWrite, 8);
        test.post(WrOpcode::kSend, 8);
        test.nak(101, code, FaultCause::kRemoteRange);
        EXPECT_THAT(test.statuses(), ElementsAre(kSuccess, status, kWrFlushErr));
        EXPECT_EQ(test.effects.sent[1].cause, FaultCause::kRemoteRange);
        EXPECT_EQ(test.effects.sent[1].opcode, WcOpcode::kRdmaWrite);
        EXPECT_EQ(test.attributes.state, QpState::kErr);
    }
}

TEST(RequesterAnswer, AReadResponseToASendDoesNotFit) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.read_response(100, PacketPosition::kOnly, 8);
    EXPECT_THAT(test.statuses(), ElementsAre(kBadRespErr));
}

TEST(RequesterAnswer, AnAtomicResponseToAReadDoesNotFit) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 8);
    test.atomic_response(100, 1);
    EXPECT_THAT(test.statuses(), ElementsAre(kBadRespErr));
}

TEST(RequesterAnswer, AReadResponseOfAnotherLengthIsALengthError) {
    for (const std::uint32_t length : {0U, 7U, 9U, kMtu}) {
        RequesterUnderTest test;
        test.post(WrOpcode::kRdmaRead, 8);
        test.read_response(100, PacketPosition::kOnly, length);
        EXPECT_THAT(test.statuses(), ElementsAre(kLocLenErr)) << length;
        EXPECT_THAT(test.effects.placed, IsEmpty());
    }
}

TEST(RequesterAnswer, AReadResponseThatEndsEarlyOrLateIsALengthError) {
    RequesterUnderTest early;
    early.post(WrOpcode::kRdmaRead, 2 * kMtu);
    early.read_response(100, PacketPosition::kOnly, kMtu);
    EXPECT_THAT(early.statuses(), ElementsAre(kLocLenErr));

    RequesterUnderTest late;
    late.post(WrOpcode::kRdmaRead, 2 * kMtu);
    late.read_response(100, PacketPosition::kFirst, kMtu);
    late.read_response(101, PacketPosition::kMiddle, kMtu);
    EXPECT_THAT(late.statuses(), ElementsAre(kLocLenErr));
}

TEST(RequesterAnswer, AResponseAcknowledgesTheRequestsBeforeIt) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.post(WrOpcode::kRdmaRead, 8);
    test.read_response(101, PacketPosition::kOnly, 8);
    EXPECT_THAT(test.ids(), ElementsAre(0, 1));
}

TEST(RequesterAnswer, CompletionsStayInOrderBehindARead) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 8);
    test.post(WrOpcode::kAtomicFetchAndAdd, 8);
    test.atomic_response(101, 5);
    EXPECT_THAT(test.ids(), IsEmpty()) << "the READ before it is missing";
    test.read_response(100, PacketPosition::kOnly, 8);
    test.atomic_response(101, 5);
    EXPECT_THAT(test.ids(), ElementsAre(0, 1));
}

TEST(RequesterAnswer, ALocalErrorWaitsForThoseBeforeItAndFlushesThoseBehind) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 8);
    test.write(WrOpcode::kSend, 8);
    test.write(WrOpcode::kSend, 8, SendFlag::kSignaled, 0xBAD);
    test.write(WrOpcode::kSend, 8, {});
    test.doorbell();
    EXPECT_THAT(test.take_psns(), ElementsAre(100, 101));
    EXPECT_THAT(test.effects.sent, IsEmpty());
    test.ack(101);
    EXPECT_THAT(test.ids(), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(test.statuses(), ElementsAre(kSuccess, kSuccess, kLocProtErr, kWrFlushErr));
}

TEST(RequesterAnswer, EachLocalCauseHasItsStatus) {
    struct Case {
        WrOpcode opcode;
        std::uint32_t length;
        std::uint32_t lkey;
        WcStatus status;
        FaultCause cause;
    };
    constexpr auto kGood = RecordingEffects::kGoodKey;
    constexpr auto kOtherPd = RecordingEffects::kOtherPdKey;
    const std::vector<Case> cases = {
        {WrOpcode::kSend, 8, 0xBAD, kLocProtErr, FaultCause::kGatherKey},
        {WrOpcode::kRdmaWrite, 8, kOtherPd, kLocProtErr, FaultCause::kGatherKey},
        {WrOpcode::kAtomicFetchAndAdd, 4, kGood, kLocLenErr, FaultCause::kAtomicNotEightBytes},
        {WrOpcode::kAtomicCmpAndSwp, 16, kGood, kLocLenErr, FaultCause::kAtomicNotEightBytes},
        {WrOpcode::kSend, (1U << 30) + 1, kGood, kLocLenErr, FaultCause::kMessageTooLong},
        {WrOpcode::kTso, 8, kGood, kLocQpOpErr, FaultCause::kOpcodeNotForService},
        {static_cast<WrOpcode>(99), 8, kGood, kLocQpOpErr, FaultCause::kOpcodeNotForService},
    };
    for (const Case& row : cases) {
        RequesterUnderTest test;
        test.post(row.opcode, row.length, SendFlag::kSignaled, row.lkey);
        EXPECT_THAT(test.take_psns(), IsEmpty()) << to_string(row.cause);
        ASSERT_THAT(test.statuses(), ElementsAre(row.status)) << to_string(row.cause);
        EXPECT_EQ(test.effects.sent[0].cause, row.cause);
    }
}

TEST(RequesterAnswer, ALandingKeyIsLookedAtWhenTheResponseIsThere) {
    struct Case {
        WrOpcode opcode;
        std::uint32_t lkey;
        FaultCause cause;
    };
    constexpr auto kReadOnly = RecordingEffects::kReadOnlyKey;
    const std::vector<Case> cases = {
        {WrOpcode::kRdmaRead, 0xBAD, FaultCause::kLandingKey},
        {WrOpcode::kRdmaRead, kReadOnly, FaultCause::kLandingRight},
        {WrOpcode::kAtomicFetchAndAdd, kReadOnly, FaultCause::kLandingRight},
    };
    for (const Case& row : cases) {
        RequesterUnderTest test;
        test.post(row.opcode, 8, SendFlag::kSignaled, row.lkey);
        EXPECT_THAT(test.take_psns(), ElementsAre(100));
        EXPECT_THAT(test.statuses(), IsEmpty());
        if (row.opcode == WrOpcode::kRdmaRead) {
            test.read_response(100, PacketPosition::kOnly, 8);
        } else {
            test.atomic_response(100, 5);
        }
        EXPECT_THAT(test.statuses(), ElementsAre(kLocProtErr));
        EXPECT_EQ(test.effects.sent[0].cause, row.cause);
        EXPECT_THAT(test.effects.placed, IsEmpty());
    }
}

TEST(RequesterAnswer, ARequestWithMoreSegmentsThanItsSlotHoldsIsMalformed) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 8);
    test.effects.sends[0].wqe.segment_count = 5;
    test.doorbell();
    EXPECT_THAT(test.statuses(), ElementsAre(kLocQpOpErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kMalformedSend);
}

// A queue pair may be made without segments and inline room; a client can write any count.
TEST(RequesterAnswer, ASegmentInASlotWithoutRoomForAnyIsMalformed) {
    RequesterUnderTest test(connected_attributes(), send_queue_shape(64, 0, 0));
    test.write(WrOpcode::kSend, 8);
    test.effects.sends[0].wqe.segment_count = 1;
    test.doorbell();
    EXPECT_THAT(test.statuses(), ElementsAre(kLocQpOpErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kMalformedSend);
}

TEST(RequesterAnswer, MoreInlineBytesThanItsSlotHoldsAreMalformed) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 8, SendFlag::kSignaled | SendFlag::kInline);
    test.effects.sends[0].wqe.inline_length = 1'000'000;
    test.doorbell();
    EXPECT_THAT(test.statuses(), ElementsAre(kLocQpOpErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kMalformedSend);
}

TEST(RequesterAnswer, AKeyRevokedUnderWayFailsTheRestOfTheMessage) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 300 * kMtu);
    test.effects.revoke(RecordingEffects::kGoodKey);
    test.ack(100 + 255);
    EXPECT_THAT(test.statuses(), ElementsAre(kLocProtErr));
}

TEST(RequesterAnswer, AKeyRevokedBeforeTheResponseLandsIsAProtectionError) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 8);
    test.effects.revoke(RecordingEffects::kGoodKey);
    test.read_response(100, PacketPosition::kOnly, 8);
    EXPECT_THAT(test.statuses(), ElementsAre(kLocProtErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kLandingKey);
    EXPECT_THAT(test.effects.placed, IsEmpty());
}

TEST(RequesterAnswer, LandingInMemoryThatIsGoneIsAProtectionError) {
    RequesterUnderTest test;
    test.effects.place_outcome = CopyOutcome::kDestinationFault;
    test.post(WrOpcode::kRdmaRead, 8);
    test.read_response(100, PacketPosition::kOnly, 8);
    EXPECT_THAT(test.statuses(), ElementsAre(kLocProtErr));
}

TEST(RequesterAnswer, AnUnreadableSourceFailsTheRequestThatSentIt) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.post(WrOpcode::kRdmaWrite, 3 * kMtu);
    test.post(WrOpcode::kSend, 8);
    test.effects.end(test.requester.fail_source(Psn(102)));
    EXPECT_THAT(test.statuses(), ElementsAre(kSuccess, kLocProtErr, kWrFlushErr));
}

TEST(RequesterAnswer, AnUnreadableSourceDoesNotFailTheReadBeforeIt) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 8);
    test.post(WrOpcode::kRdmaWrite, 8);
    test.effects.end(test.requester.fail_source(Psn(101)));
    EXPECT_THAT(test.statuses(), IsEmpty());
    test.read_response(100, PacketPosition::kOnly, 8);
    EXPECT_THAT(test.statuses(), ElementsAre(kSuccess, kLocProtErr));
}

TEST(RequesterAnswer, FlushCompletesSignaledAndUnsignaledInOrder) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8, {});
    test.post(WrOpcode::kRdmaRead, 8);
    test.post(WrOpcode::kRdmaWrite, 8, {});
    test.requester.flush(FaultCause::kFlushed);
    EXPECT_THAT(test.ids(), ElementsAre(0, 1, 2));
    EXPECT_THAT(test.statuses(), ElementsAre(kWrFlushErr, kWrFlushErr, kWrFlushErr));
    EXPECT_TRUE(test.effects.timers.empty());
    EXPECT_FALSE(test.requester.has_outstanding());
    test.requester.post(3);
    test.ack(102);
    EXPECT_EQ(test.effects.sent.size(), 3U);
}

// A completion queue that overruns takes its queue pairs down while they complete.
TEST(RequesterAnswer, AFailureInsideACompletionFlushesTheRestAndNothingTwice) {
    RequesterUnderTest test;
    for (int i = 0; i < 4; ++i) {
        test.post(WrOpcode::kSend, 8);
    }
    test.effects.overruns = true;
    test.ack(103);
    EXPECT_THAT(test.ids(), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(test.statuses(), ElementsAre(kSuccess, kWrFlushErr, kWrFlushErr, kWrFlushErr));
}

TEST(RequesterAnswer, AFailureInsideAFailingCompletionFlushesOnce) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.post(WrOpcode::kSend, 8);
    test.effects.overruns = true;
    test.nak(100, NakCode::kInvalidRequest);
    EXPECT_THAT(test.statuses(), ElementsAre(kRemInvReqErr, kWrFlushErr));
    EXPECT_EQ(test.effects.failures.size(), 1U);
}

}  // namespace
}  // namespace simverbs::test
