// Each packet that an engine throws away is told to the trace, with the reason.
#include <algorithm>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum PacketPosition;
using enum PacketFate;
using testing::ElementsAre;
using testing::IsEmpty;

QpAttributes of_service(Service service) {
    QpAttributes attributes = connected_attributes();
    attributes.service = service;
    return attributes;
}

TEST(DiscardedPackets, BehindAGapUntilTheMissingOneComes) {
    ResponderUnderTest test;
    test.write(kOnly, 101, 8);
    test.write(kOnly, 102, 8);
    EXPECT_THAT(test.effects.fates, ElementsAre(kOutOfSequence, kOutOfSequence));
    test.write(kOnly, 100, 8);
    test.write(kOnly, 101, 8);
    EXPECT_EQ(test.effects.fates.size(), 2U);
}

TEST(DiscardedPackets, TheOneWithoutAReceiveAndThoseBehindIt) {
    ResponderUnderTest test;
    test.send(kOnly, 100, 8);
    test.send(kOnly, 101, 8);
    EXPECT_THAT(test.effects.fates, ElementsAre(kNoReceive, kBehindRnrNak));
}

TEST(DiscardedPackets, ARefusedRequestAndThoseBehindIt) {
    ResponderUnderTest test;
    test.read(100, 40 * kMtu);
    test.write(kOnly, 140, 8, 0, Trailer::kNone, 0xBAD);
    test.write(kOnly, 141, 8);
    EXPECT_THAT(test.effects.fates, ElementsAre(kRefused, kBehindRefused));
}

TEST(DiscardedPackets, NotADuplicateThatIsAnsweredAgain) {
    ResponderUnderTest test;
    test.write(kOnly, 100, 8);
    test.read(101, 8);
    test.write(kOnly, 100, 8);
    test.read(101, 8);
    EXPECT_THAT(test.effects.fates, IsEmpty());
    test.read(100, 8);  // no READ had that PSN
    EXPECT_THAT(test.effects.fates, ElementsAre(kUnanswerable));
}

TEST(DiscardedPackets, NotTheRequestOfAReadResponseThatCannotBeSent) {
    ResponderUnderTest test;
    test.read(100, 40 * kMtu);
    test.effects.revoke(RecordingEffects::kGoodKey);
    test.transmitter_free();
    EXPECT_THAT(test.effects.fates, IsEmpty());
}

TEST(DiscardedPackets, TheRestOfAUcMessageThatWasCut) {
    ResponderUnderTest test(kSpec, of_service(Service::kUc));
    const auto write = [&test](PacketPosition position, std::uint32_t psn) {
        Packet packet = request(MessageKind::kWrite, position, psn);
        packet.opcode =
            kEncodeOpcode(WireTransport::kUc, MessageKind::kWrite, position, Trailer::kNone);
        packet.remote_address = kRemote;
        packet.rkey = RecordingEffects::kGoodKey;
        packet.dma_length = 5 * kMtu;
        packet.payload.length = kMtu;
        test.give(packet);
    };
    write(kFirst, 100);
    write(kMiddle, 102);  // told by the message that it cuts
    write(kMiddle, 103);
    write(kLast, 104);
    EXPECT_THAT(test.effects.discards, ElementsAre(FaultCause::kUnackedMessageCut));
    EXPECT_THAT(test.effects.fates, ElementsAre(kCutMessage, kCutMessage));
}

TEST(DiscardedPackets, AnAnswerThatNobodyAwaits) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 8);
    test.ack(100);
    EXPECT_THAT(test.effects.fates, IsEmpty());
    test.ack(100);
    EXPECT_THAT(test.effects.fates, ElementsAre(kNotAwaited));
}

TEST(DiscardedPackets, AResponseBehindOneThatIsMissing) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 3 * kMtu);
    test.read_response(100, kFirst, kMtu);
    test.read_response(102, kLast, kMtu);
    EXPECT_THAT(test.effects.fates, ElementsAre(kResponseMissing));
}

TEST(DiscardedPackets, EachReasonHasWordsOfItsOwn) {
    std::vector<std::string_view> names(kPacketFateNames.begin(), kPacketFateNames.end());
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
    EXPECT_FALSE(is_consequence("no such queue pair"));
    EXPECT_TRUE(is_consequence("PSN out of sequence"));
    EXPECT_FALSE(is_consequence("none of them"));
}

}  // namespace
}  // namespace simverbs::test
