// BIND_MW and LOCAL_INV in the send queue, and SEND_WITH_INV at the responder.
#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using enum WcStatus;
using enum PacketPosition;

constexpr std::uint32_t kKey = 0x1234;

// A bind carries what it says in fields of its own; the engine only hands it on.
void write_bind(RequesterUnderTest& test, SendFlags flags = SendFlag::kSignaled) {
    test.write(WrOpcode::kBindMw, 0, flags);
    put_binding({.window = 7, .lkey = 8, .rkey = 9, .access = 2, .address = 0x5000, .length = 64},
                test.effects.sends.back().wqe);
}

TEST(LocalOperation, ABindIsCarriedOutAtOnceWithoutAPacket) {
    RequesterUnderTest test;
    write_bind(test);
    test.doorbell();
    EXPECT_THAT(test.take_psns(), IsEmpty());
    EXPECT_THAT(test.statuses(), ElementsAre(kSuccess));
    EXPECT_EQ(test.effects.sent[0].opcode, WcOpcode::kBindMw);
    ASSERT_EQ(test.effects.bindings.size(), 1U);
    const WindowBinding& binding = test.effects.bindings[0];
    EXPECT_EQ(binding.window, 7U);
    EXPECT_EQ(binding.lkey, 8U);
    EXPECT_EQ(binding.rkey, 9U);
    EXPECT_EQ(binding.access, 2U);
    EXPECT_EQ(binding.address, 0x5000U);
    EXPECT_EQ(binding.length, 64U);
    EXPECT_TRUE(test.requester.drained());
    EXPECT_FALSE(test.effects.armed(EngineTimer::kAcknowledge));
}

TEST(LocalOperation, ABindTakesNoPsn) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 8);
    write_bind(test);
    test.post(WrOpcode::kSend, 8);
    EXPECT_THAT(test.take_psns(), ElementsAre(100U, 101U));
    test.ack(101);
    EXPECT_THAT(test.ids(), ElementsAre(0U, 1U, 2U));
    EXPECT_THAT(test.statuses(), ElementsAre(kSuccess, kSuccess, kSuccess));
}

TEST(LocalOperation, ABindDoesNotWaitForEarlierRequestsButCompletesAfterThem) {
    RequesterUnderTest test;
    test.write(WrOpcode::kRdmaRead, 8);
    write_bind(test);
    test.doorbell();
    EXPECT_EQ(test.effects.bindings.size(), 1U);
    EXPECT_THAT(test.statuses(), IsEmpty());
    test.read_response(100, kOnly, 8);
    EXPECT_THAT(test.ids(), ElementsAre(0U, 1U));
}

TEST(LocalOperation, AFencedBindWaitsForEarlierReads) {
    RequesterUnderTest test;
    test.write(WrOpcode::kRdmaRead, 8);
    write_bind(test, SendFlag::kSignaled | SendFlag::kFence);
    test.post(WrOpcode::kSend, 8);
    EXPECT_THAT(test.effects.bindings, IsEmpty());
    EXPECT_THAT(test.take_psns(), ElementsAre(100U)) << "nothing overtakes it";
    test.read_response(100, kOnly, 8);
    EXPECT_EQ(test.effects.bindings.size(), 1U);
    EXPECT_THAT(test.take_psns(), ElementsAre(101U));
}

TEST(LocalOperation, ALocalInvalidateWaitsForEverythingBeforeIt) {
    RequesterUnderTest test;
    test.write(WrOpcode::kRdmaWrite, 8, {});
    test.write(WrOpcode::kLocalInv, 0);
    test.effects.sends.back().wqe.immediate = kKey;
    test.post(WrOpcode::kSend, 8);
    ASSERT_EQ(test.effects.packets.size(), 1U);
    EXPECT_TRUE(test.effects.packets[0].ack_request) << "or it would wait for ever";
    EXPECT_THAT(test.effects.invalidated, IsEmpty());
    test.take_psns();
    test.ack(100);
    EXPECT_THAT(test.effects.invalidated, ElementsAre(kKey));
    EXPECT_THAT(test.ids(), ElementsAre(1U));
    EXPECT_EQ(test.effects.sent[0].opcode, WcOpcode::kLocalInv);
    EXPECT_THAT(test.take_psns(), ElementsAre(101U));
}

TEST(LocalOperation, ARewindDoesNotCarryItOutTwice) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 8);
    write_bind(test);
    test.post(WrOpcode::kSend, 8);
    test.take_psns();
    test.fire(EngineTimer::kAcknowledge);
    EXPECT_THAT(test.take_psns(), ElementsAre(100U, 101U));
    EXPECT_EQ(test.effects.bindings.size(), 1U);
    test.ack(101);
    EXPECT_THAT(test.ids(), ElementsAre(0U, 1U, 2U));
}

TEST(LocalOperation, ALateAnswerPassesOverOneThatWasRewoundBehind) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 8);
    write_bind(test);
    write_bind(test);
    test.post(WrOpcode::kSend, 8);
    test.take_psns();
    test.nak(100, NakCode::kPsnSequenceError);
    test.take_psns();
    test.ack(100);
    EXPECT_THAT(test.ids(), ElementsAre(0U, 1U, 2U));
    test.ack(101);
    EXPECT_THAT(test.ids(), ElementsAre(0U, 1U, 2U, 3U));
    EXPECT_TRUE(test.requester.drained());
}

TEST(LocalOperation, ARefusedOneFailsInItsTurnAndFlushesWhatFollows) {
    RequesterUnderTest test;
    test.effects.accepts_windows = false;
    test.write(WrOpcode::kSend, 8);
    write_bind(test, {});
    test.post(WrOpcode::kSend, 8);
    EXPECT_THAT(test.take_psns(), ElementsAre(100U));
    EXPECT_THAT(test.statuses(), IsEmpty());
    test.ack(100);
    EXPECT_THAT(test.statuses(), ElementsAre(kSuccess, kMwBindErr, kWrFlushErr));
    EXPECT_EQ(test.effects.sent[1].cause, FaultCause::kBindRefused);
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kBindRefused));
    EXPECT_EQ(test.attributes.state, QpState::kErr);
}

TEST(LocalOperation, ARefusedLocalInvalidateIsAMemoryManagementError) {
    RequesterUnderTest test;
    test.effects.accepts_windows = false;
    test.post(WrOpcode::kLocalInv, 0);
    EXPECT_THAT(test.statuses(), ElementsAre(kMwBindErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kLocalInvalidateRefused);
}

TEST(LocalOperation, ALocalInvalidateOfAType1WindowIsAnOperationError) {
    RequesterUnderTest test;
    test.effects.accepts_windows = false;
    test.effects.refusal = InvalidateVerdict::kType1;
    test.post(WrOpcode::kLocalInv, 0);
    EXPECT_THAT(test.statuses(), ElementsAre(kLocQpOpErr));
    EXPECT_EQ(test.effects.sent[0].cause, FaultCause::kLocalInvalidateOfType1);
}

TEST(LocalOperation, WaitsInSqdLikeAnyOther) {
    RequesterUnderTest test;
    test.attributes.state = QpState::kSqd;
    write_bind(test);
    test.doorbell();
    EXPECT_THAT(test.effects.bindings, IsEmpty());
    test.attributes.state = QpState::kRts;
    test.run();
    EXPECT_THAT(test.statuses(), ElementsAre(kSuccess));
}

TEST(LocalOperation, IsFlushedWithoutBeingCarriedOut) {
    RequesterUnderTest test;
    test.write(WrOpcode::kRdmaRead, 8);
    write_bind(test, SendFlag::kSignaled | SendFlag::kFence);
    test.doorbell();
    test.requester.flush(FaultCause::kFlushed);
    EXPECT_THAT(test.statuses(), ElementsAre(kWrFlushErr, kWrFlushErr));
    EXPECT_THAT(test.effects.bindings, IsEmpty());
}

TEST(SendWithInvalidate, TakesTheKeyAwayAndSaysSoInTheCompletion) {
    ResponderUnderTest test;
    test.post_receive(1, 64);
    Packet packet = request(MessageKind::kSend, kOnly, 100, Trailer::kInvalidate);
    packet.immediate = kKey;
    packet.ack_request = true;
    test.give(packet);
    EXPECT_THAT(test.effects.invalidated, ElementsAre(kKey));
    ASSERT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.received[0].status, kSuccess);
    EXPECT_TRUE(test.effects.received[0].invalidated);
    EXPECT_FALSE(test.effects.received[0].has_immediate);
    EXPECT_EQ(test.effects.received[0].immediate, kKey);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100"));
    test.give(packet);
    EXPECT_EQ(test.effects.invalidated.size(), 1U) << "a duplicate is not executed";
}

TEST(SendWithInvalidate, LooksAtTheKeyInTheLastPacket) {
    ResponderUnderTest test;
    test.post_receive(1, 4096);
    test.send(kFirst, 100, kMtu);
    EXPECT_THAT(test.effects.invalidated, IsEmpty());
    test.send(kLast, 101, 8, Trailer::kInvalidate);
    EXPECT_EQ(test.effects.invalidated.size(), 1U);
    EXPECT_EQ(test.effects.received[0].byte_length, kMtu + 8);
}

TEST(SendWithInvalidate, OfAKeyThatCannotBeIsNeitherAcknowledgedNorRefused) {
    ResponderUnderTest test;
    test.effects.accepts_windows = false;
    test.post_receive(1, 64);
    test.send(kOnly, 100, 8, Trailer::kInvalidate);
    EXPECT_THAT(test.take_answers(), IsEmpty());
    ASSERT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.received[0].status, kMwBindErr);
    EXPECT_EQ(test.effects.received[0].cause, FaultCause::kRemoteInvalidateRefused);
    EXPECT_THAT(test.effects.events, IsEmpty());
    EXPECT_EQ(test.attributes.state, QpState::kErr);
}

TEST(SendWithInvalidate, OfAKeyThatCannotBeIsAcknowledgedByRxe) {
    ResponderUnderTest test(kRxe);
    test.effects.accepts_windows = false;
    test.post_receive(1, 64);
    test.send(kOnly, 100, 8, Trailer::kInvalidate);
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 100"));
    EXPECT_EQ(test.effects.received[0].status, kRemInvReqErr);
}

}  // namespace
}  // namespace simverbs::test
