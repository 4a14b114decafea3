#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr auto kAckTimer = EngineTimer::kAcknowledge;

TEST(RequesterRecovery, ASequenceNakGoesBackToThePsnItNames) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 5 * kMtu);
    test.take_psns();
    test.nak(102, NakCode::kPsnSequenceError);
    for (const Packet& packet : test.effects.packets) {
        EXPECT_EQ(packet.attempt, 2);
    }
    EXPECT_THAT(test.take_psns(), ElementsAre(102, 103, 104));
    test.ack(104);
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST(RequesterRecovery, ASecondNakOfTheSameGapChangesNothing) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 5 * kMtu);
    test.nak(102, NakCode::kPsnSequenceError);
    test.take_psns();
    const std::uint8_t left = test.requester.retries_left();
    test.nak(102, NakCode::kPsnSequenceError);
    EXPECT_THAT(test.take_psns(), IsEmpty());
    EXPECT_EQ(test.requester.retries_left(), left);
}

TEST(RequesterRecovery, ALateAckOvertakesTheRetransmission) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 1024 * kMtu);
    test.fire(kAckTimer);
    test.take_psns();
    test.ack(100 + 255);
    EXPECT_EQ(test.take_psns().front(), 100U + 256U);
}

TEST(RequesterRecovery, GhostAcksOutsideTheWindowAreIgnored) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.ack(99);
    test.ack(101);
    test.ack(0x800000);
    EXPECT_THAT(test.effects.sent, IsEmpty());
    test.ack(100);
    test.ack(100);
    EXPECT_THAT(test.ids(), ElementsAre(0));
}

TEST(RequesterRecovery, AnAckBeyondAReadIsAnImplicitNakOfItsResponse) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 2 * kMtu);
    test.post(WrOpcode::kSend, 8);
    test.take_psns();
    test.read_response(100, PacketPosition::kFirst, kMtu);
    test.ack(102);
    EXPECT_EQ(test.effects.packets[0].operation().operation, "RDMA_READ_REQUEST");
    EXPECT_EQ(test.effects.packets[0].remote_address, kRemote + kMtu);
    EXPECT_EQ(test.effects.packets[0].dma_length, kMtu);
    EXPECT_THAT(test.take_psns(), ElementsAre(101, 102));
    EXPECT_THAT(test.effects.sent, IsEmpty());
}

TEST(RequesterRecovery, AMissingReadResponseIsAskedForAgainFromWhereItBroke) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 5 * kMtu);
    test.take_psns();
    test.read_response(100, PacketPosition::kFirst, kMtu);
    test.read_response(102, PacketPosition::kMiddle, kMtu);
    test.read_response(103, PacketPosition::kMiddle, kMtu);
    EXPECT_THAT(test.take_psns(), ElementsAre(101));
    EXPECT_EQ(test.effects.placed.size(), 1U);
    test.read_response(101, PacketPosition::kFirst, kMtu);
    test.read_response(102, PacketPosition::kMiddle, kMtu);
    test.read_response(103, PacketPosition::kMiddle, kMtu);
    test.read_response(104, PacketPosition::kLast, kMtu);
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kSuccess));
    EXPECT_EQ(test.effects.sent[0].byte_length, 5 * kMtu);
}

TEST(RequesterRecovery, ATimeoutResendsEverythingUnacknowledged) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 2 * kMtu);
    test.post(WrOpcode::kSend, 8);
    EXPECT_EQ(test.effects.timers[kAckTimer], 67'108'864ns);
    test.ack(100);
    test.take_psns();
    test.fire(kAckTimer);
    EXPECT_THAT(test.take_psns(), ElementsAre(101, 102));
}

TEST(RequesterRecovery, AfterTheFirstTryAndRetryCntMoreItGivesUp) {
    RequesterUnderTest test;  // retry_cnt 3
    test.post(WrOpcode::kSend, 8);
    for (int retry = 0; retry < 3; ++retry) {
        EXPECT_THAT(test.take_psns(), ElementsAre(100));
        test.fire(kAckTimer);
    }
    EXPECT_THAT(test.take_psns(), ElementsAre(100));
    test.fire(kAckTimer);
    EXPECT_THAT(test.take_psns(), IsEmpty());
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kRetryExcErr));
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kPacketsLost));
    EXPECT_TRUE(test.effects.timers.empty());
}

TEST(RequesterRecovery, SequenceNaksUseTheSameCounter) {
    QpAttributes attributes = connected_attributes();
    attributes.retry_count = 0;
    RequesterUnderTest test(attributes);
    test.post(WrOpcode::kSend, 2 * kMtu);
    test.nak(100, NakCode::kPsnSequenceError);
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kRetryExcErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kSequenceRetriesUsedUp);
}

TEST(RequesterRecovery, ProgressGivesAllRetriesBack) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 3 * kMtu);
    for (int i = 0; i < 3; ++i) {
        test.fire(kAckTimer);
    }
    EXPECT_EQ(test.requester.retries_left(), 0);
    test.ack(100);
    EXPECT_EQ(test.requester.retries_left(), 3);
    test.rnr_nak(101, 1);
    EXPECT_EQ(test.requester.rnr_retries_left(), 1);
    test.fire(EngineTimer::kRnr);
    test.ack(101);
    EXPECT_EQ(test.requester.rnr_retries_left(), 2);
}

TEST(RequesterRecovery, TimeoutZeroWaitsForEver) {
    QpAttributes attributes = connected_attributes();
    attributes.timeout = 0;
    RequesterUnderTest test(attributes);
    test.post(WrOpcode::kSend, 8);
    EXPECT_FALSE(test.effects.armed(kAckTimer));
}

TEST(RequesterRecovery, AnRnrNakWaitsAsLongAsItsTimerCodeSays) {
    const std::vector<std::pair<std::uint8_t, std::chrono::microseconds>> timers = {
        {0, 655'360us}, {1, 10us}, {12, 640us}, {25, 61'440us}, {31, 491'520us}};
    for (const auto& [code, wait] : timers) {
        RequesterUnderTest test;
        test.post(WrOpcode::kSend, 8);
        test.take_psns();
        test.rnr_nak(100, code);
        EXPECT_EQ(test.effects.timers[EngineTimer::kRnr], wait) << int{code};
        EXPECT_FALSE(test.effects.armed(kAckTimer));
        test.post(WrOpcode::kSend, 8);
        EXPECT_THAT(test.take_psns(), IsEmpty());
        test.fire(EngineTimer::kRnr);
        EXPECT_THAT(test.take_psns(), ElementsAre(100, 101));
        EXPECT_TRUE(test.effects.armed(kAckTimer));
    }
}

TEST(RequesterRecovery, RnrRetryCountsTheWaitsAndSevenNeverEnds) {
    for (std::uint8_t rnr_retry = 0; rnr_retry <= 7; ++rnr_retry) {
        QpAttributes attributes = connected_attributes();
        attributes.rnr_retry = rnr_retry;
        RequesterUnderTest test(attributes);
        test.post(WrOpcode::kSend, 8);
        int waits = 0;
        while (test.effects.sent.empty() && waits < 50) {
            test.rnr_nak(100, 1);
            if (test.effects.armed(EngineTimer::kRnr)) {
                ++waits;
                test.fire(EngineTimer::kRnr);
            }
        }
        EXPECT_EQ(waits, rnr_retry == 7 ? 50 : rnr_retry);
        if (rnr_retry < 7) {
            EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kRnrRetryExcErr));
        }
        EXPECT_EQ(test.requester.retries_left(), 3) << "waiting is no retry";
    }
}

TEST(RequesterRecovery, AnRnrNakAcknowledgesWhatCameBefore) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 8);
    test.post(WrOpcode::kSend, 8);
    test.rnr_nak(101, 1);
    EXPECT_THAT(test.ids(), ElementsAre(0));
}

// Two copies were on their way: the first found no receive, the second did.
TEST(RequesterRecovery, AnAckThatComesWhileItWaitsForAReceiverEndsTheWait) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.fire(kAckTimer);
    test.rnr_nak(100, 1);
    test.ack(100);
    EXPECT_THAT(test.ids(), ElementsAre(0));
    test.take_psns();
    test.fire(EngineTimer::kRnr);
    EXPECT_THAT(test.take_psns(), IsEmpty());
    test.post(WrOpcode::kSend, 8);
    EXPECT_THAT(test.take_psns(), ElementsAre(101));
}

// Soft-RoCE's acknowledgment timer runs on while its requester waits for a receive.
TEST(RequesterRecovery, AnAckTimerThatRunsInAnRnrWaitEndsItInTheEnd) {
    RequesterUnderTest test(kRxe);  // retry_cnt 3
    test.post(WrOpcode::kSend, 8);
    test.rnr_nak(100, 12);
    for (int retry = 0; retry < 3; ++retry) {
        ASSERT_TRUE(test.effects.armed(kAckTimer)) << "retry " << retry;
        test.fire(kAckTimer);
        EXPECT_EQ(test.requester.state(), RequesterState::kRnrWaitRecovering);
    }
    ASSERT_TRUE(test.effects.armed(kAckTimer));
    test.fire(kAckTimer);
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kRetryExcErr));
}

TEST(RequesterRecovery, AnAlternatePathGivesAllRetriesBack) {
    RequesterUnderTest test;  // retry_cnt 3
    test.effects.has_alternate_path = true;
    test.post(WrOpcode::kSend, 8);
    for (int retry = 0; retry < 4; ++retry) {
        test.fire(kAckTimer);
    }
    EXPECT_EQ(test.requester.retries_left(), 3);
    for (int retry = 0; retry < 3; ++retry) {
        test.fire(kAckTimer);
    }
    EXPECT_THAT(test.statuses(), IsEmpty());
    test.fire(kAckTimer);
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kRetryExcErr));
}

// A limited rate lets one packet go at a time.
TEST(RequesterRecovery, WhatALateAckCoversIsNotSentAgain) {
    RequesterUnderTest test;
    RateReaction rate(test.effects);
    test.requester.set_rate(rate);
    test.post(WrOpcode::kRdmaWrite, 5 * kMtu);
    test.take_psns();
    rate.notified(100'000'000'000);
    test.fire(kAckTimer);
    EXPECT_THAT(test.take_psns(), ElementsAre(100));
    test.ack(102);
    test.fire(EngineTimer::kRate);
    EXPECT_THAT(test.take_psns(), ElementsAre(103));
}

// The peer goes on expecting the PSN behind the last packet that it has seen.
TEST(RequesterRecovery, AQueuePairThatLeavesSqeGoesOnWithTheNextPsn) {
    QpAttributes attributes = connected_attributes();
    attributes.service = Service::kUc;
    RequesterUnderTest test(attributes);
    test.post(WrOpcode::kSend, 8);
    test.fire(EngineTimer::kTransmitted);
    constexpr std::uint32_t kBadKey = 0x999;
    test.post(WrOpcode::kSend, 8, SendFlag::kSignaled, kBadKey);
    ASSERT_THAT(test.statuses(), ElementsAre(WcStatus::kSuccess, WcStatus::kLocProtErr));
    test.take_psns();
    test.attributes.state = QpState::kRts;
    test.requester.resume();
    test.post(WrOpcode::kSend, 8);
    EXPECT_THAT(test.take_psns(), ElementsAre(101));
}

TEST(RequesterRecovery, WhatWasSentTwiceKeepsItsPayloadsWhenItCompletes) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.ack(100);
    EXPECT_EQ(test.effects.keeps, 0U);
    test.post(WrOpcode::kSend, 8);
    test.fire(kAckTimer);
    test.ack(101);
    EXPECT_EQ(test.effects.keeps, 1U);
}

TEST(RequesterRecovery, RetransmittedPacketsAskForAnAckEach) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaWrite, 5 * kMtu);
    test.effects.take_packets();
    test.fire(kAckTimer);
    std::vector<bool> asked;
    for (const Packet& packet : test.effects.packets) {
        asked.push_back(packet.ack_request);
    }
    EXPECT_THAT(asked, Each(true));
}

}  // namespace
}  // namespace simverbs::test
