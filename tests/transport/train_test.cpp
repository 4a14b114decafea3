// How trains are made and taken; that they are what their packets are is in tests/hca.
#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum PacketPosition;
using testing::ElementsAre;
using testing::IsEmpty;

struct Made {
    std::uint32_t psn;
    std::uint32_t packets;
    std::uint32_t payload;
    bool asks;

    friend bool operator==(const Made&, const Made&) = default;
};

std::vector<Made> made_by(RequesterUnderTest& test) {
    std::vector<Made> made;
    for (const Packet& packet : test.effects.packets) {
        made.push_back(
            {packet.psn.value(), packet.packets, packet.payload.length, packet.ack_request});
    }
    test.effects.packets.clear();
    return made;
}

// A window is 256 packets here, and a quarter of it asks for an acknowledgment.
TEST(Train, OfAMessageIsWhatFollowsItsFirstPacket) {
    RequesterUnderTest test;
    test.effects.train = 1000;
    test.post(WrOpcode::kRdmaWrite, 8 * kMtu + 5);
    EXPECT_THAT(made_by(test),
                ElementsAre(Made{100, 1, kMtu, false}, Made{101, 8, 7 * kMtu + 5, true}));
}

TEST(Train, EndsWhereAnAcknowledgmentIsAskedForAndWhereTheWindowDoes) {
    RequesterUnderTest test;
    test.effects.train = 1000;
    test.post(WrOpcode::kSend, 300 * kMtu);
    EXPECT_THAT(made_by(test),
                ElementsAre(Made{100, 1, kMtu, false}, Made{101, 63, 63 * kMtu, true},
                            Made{164, 64, 64 * kMtu, true}, Made{228, 64, 64 * kMtu, true},
                            Made{292, 64, 64 * kMtu, true}));
    test.ack(163);
    EXPECT_THAT(made_by(test), ElementsAre(Made{356, 44, 44 * kMtu, true}));
}

TEST(Train, IsNoLongerThanSomebodyWants) {
    RequesterUnderTest test;
    test.effects.train = 3;
    test.post(WrOpcode::kRdmaWrite, 6 * kMtu);
    EXPECT_THAT(made_by(test), ElementsAre(Made{100, 1, kMtu, false}, Made{101, 3, 3 * kMtu, false},
                                           Made{104, 2, 2 * kMtu, true}));
}

TEST(Train, HasNoPacketWithMoreThanAPayload) {
    RequesterUnderTest test;
    test.effects.train = 1000;
    test.post(WrOpcode::kRdmaWriteWithImm, 5 * kMtu);
    EXPECT_THAT(made_by(test), ElementsAre(Made{100, 1, kMtu, false}, Made{101, 3, 3 * kMtu, false},
                                           Made{104, 1, kMtu, true}));
}

TEST(Train, IsNothingThatIsSentAgain) {
    RequesterUnderTest test;
    test.effects.train = 1000;
    test.post(WrOpcode::kRdmaWrite, 4 * kMtu);
    made_by(test);
    test.fire(EngineTimer::kAcknowledge);
    EXPECT_THAT(made_by(test), ElementsAre(Made{100, 1, kMtu, true}, Made{101, 1, kMtu, true},
                                           Made{102, 1, kMtu, true}, Made{103, 1, kMtu, true}));
}

Packet train(MessageKind kind, PacketPosition position, std::uint32_t psn, std::uint16_t packets,
             std::uint32_t length) {
    Packet packet = request(kind, position, psn);
    packet.packets = packets;
    packet.train_mtu = kMtu;
    packet.payload.length = length;
    packet.ack_request = position == kLast;
    return packet;
}

TEST(Train, IsPlacedAtOnce) {
    ResponderUnderTest test;
    test.write(kFirst, 100, kMtu, 7 * kMtu + 9);
    test.effects.placed.clear();
    test.take_answers();
    Packet seven = train(MessageKind::kWrite, kLast, 101, 7, 6 * kMtu + 9);
    seven.is_placed = test.responder.take_ahead(seven);
    ASSERT_TRUE(seven.is_placed);
    ASSERT_EQ(test.effects.placed.size(), 1U);
    EXPECT_EQ(test.effects.placed[0].address, kRemote + kMtu);
    EXPECT_EQ(test.effects.placed[0].length, 6 * kMtu + 9);
    EXPECT_EQ(test.responder.expected_psn(), Psn(101)) << "until it is received";
    test.give(seven);
    EXPECT_EQ(test.responder.expected_psn(), Psn(108));
    EXPECT_THAT(test.take_answers(), ElementsAre("ACK 107"));
    EXPECT_EQ(test.effects.messages_delivered, 1U);
    EXPECT_EQ(test.effects.placed.size(), 1U);
}

// Whatever one of its packets would be refused for.
TEST(Train, IsRefusedWholeAndChangesNothing) {
    const auto refused = [](const Packet& packet, const QpAttributes& attributes,
                            bool begun = true) {
        ResponderUnderTest test(kSpec, attributes);
        if (begun) {
            test.write(kFirst, 100, kMtu, 8 * kMtu);
        }
        test.effects.placed.clear();
        test.take_answers();
        const Psn expected = test.responder.expected_psn();
        const bool taken = test.responder.take_ahead(packet);
        EXPECT_THAT(test.take_answers(), IsEmpty());
        EXPECT_EQ(test.responder.expected_psn(), expected);
        return !taken;
    };
    const QpAttributes usual = connected_attributes();
    QpAttributes no_right = usual;
    no_right.access = Access::kLocalWrite;
    EXPECT_FALSE(refused(train(MessageKind::kWrite, kMiddle, 101, 3, 3 * kMtu), usual));
    EXPECT_TRUE(refused(train(MessageKind::kWrite, kMiddle, 102, 3, 3 * kMtu), usual));
    EXPECT_TRUE(refused(train(MessageKind::kWrite, kMiddle, 100, 3, 3 * kMtu), usual));
    EXPECT_TRUE(refused(train(MessageKind::kSend, kMiddle, 101, 3, 3 * kMtu), usual));
    EXPECT_TRUE(refused(train(MessageKind::kWrite, kMiddle, 101, 8, 8 * kMtu), usual));
    EXPECT_TRUE(refused(train(MessageKind::kWrite, kLast, 101, 3, 3 * kMtu), usual));
    EXPECT_TRUE(refused(train(MessageKind::kWrite, kMiddle, 101, 3, 3 * kMtu - 1), usual));
    EXPECT_TRUE(refused(train(MessageKind::kWrite, kMiddle, 100, 3, 3 * kMtu), usual, false));
    EXPECT_TRUE(refused(train(MessageKind::kWrite, kMiddle, 101, 3, 3 * kMtu), no_right, false));
}

TEST(Train, WhoseBytesDoNotLandIsRefused) {
    ResponderUnderTest test;
    test.write(kFirst, 100, kMtu, 4 * kMtu);
    test.effects.place_outcome = CopyOutcome::kDestinationFault;
    EXPECT_FALSE(test.responder.take_ahead(train(MessageKind::kWrite, kLast, 101, 3, 3 * kMtu)));
    EXPECT_EQ(test.responder.expected_psn(), Psn(101));
}

}  // namespace
}  // namespace simverbs::test
