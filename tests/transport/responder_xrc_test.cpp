// Extended reliable connections: every request names the shared receive queue that serves it.
#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum PacketPosition;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr SrqNumber kQueue{7};
constexpr SrqNumber kOtherQueue{8};
constexpr SrqNumber kStrangeQueue{9};

QpAttributes target_attributes() {
    QpAttributes attributes = connected_attributes();
    attributes.service = Service::kXrcTgt;
    return attributes;
}

class XrcTarget : public ResponderUnderTest {
  public:
    XrcTarget() : ResponderUnderTest(kSpec, target_attributes()) {
        effects.shared_queues = {kQueue, kOtherQueue};
    }
    void give(MessageKind kind, PacketPosition position, std::uint32_t psn, std::uint32_t length,
              SrqNumber queue) {
        Packet packet = request(kind, position, psn);
        packet.opcode = kEncodeOpcode(WireTransport::kXrc, kind, position, Trailer::kNone);
        packet.srq = queue;
        packet.dma_length = length;
        packet.payload.length = kind == MessageKind::kRead ? 0 : length;
        ResponderUnderTest::give(packet);
    }
};

TEST(XrcResponder, AQueueThatDoesNotServeItIsRefused) {
    XrcTarget test;
    test.give(MessageKind::kSend, kOnly, 100, 8, kStrangeQueue);
    EXPECT_THAT(test.take_answers(), ElementsAre("NAK 4 at 100"));
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kXrcSrqInvalid));
}

TEST(XrcResponder, AMessageStaysWithItsQueue) {
    XrcTarget test;
    test.post_receive(1, 4 * kMtu);
    test.give(MessageKind::kSend, kFirst, 100, kMtu, kQueue);
    test.give(MessageKind::kSend, kLast, 101, 8, kOtherQueue);
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kXrcSrqInvalid));
    EXPECT_EQ(test.effects.placed.size(), 1U);
    ASSERT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.received[0].srq, kQueue) << "it completes where it was posted";
}

// A READ is answered out of another queue's domain while a message fills a receive.
TEST(XrcResponder, AnAnswerUnderWayLeavesTheReceiveWithItsQueue) {
    XrcTarget test;
    test.post_receive(1, 4 * kMtu);
    test.give(MessageKind::kRead, kOnly, 100, 40 * kMtu, kOtherQueue);
    test.give(MessageKind::kSend, kFirst, 140, kMtu, kQueue);
    test.transmitter_free();
    EXPECT_EQ(test.effects.packets.size(), 32U);
    EXPECT_EQ(test.effects.remote_key_of, kOtherQueue);
    test.give(MessageKind::kSend, kLast, 141, 8, kQueue);
    ASSERT_EQ(test.effects.received.size(), 1U);
    EXPECT_EQ(test.effects.received[0].srq, kQueue);
    EXPECT_EQ(test.effects.receive_key_of, kQueue);
}

TEST(XrcResponder, AReadWhoseQueueGoesAwayEndsInARefusal) {
    XrcTarget test;
    test.give(MessageKind::kRead, kOnly, 100, 40 * kMtu, kOtherQueue);
    test.take_answers();
    test.effects.shared_queues.erase(kOtherQueue);
    test.transmitter_free();
    EXPECT_THAT(test.take_answers(), ElementsAre("NAK 2 at 116"));
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kRemoteKey));
}

}  // namespace
}  // namespace simverbs::test
