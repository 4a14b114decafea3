#include "simverbs/faults/packet_matcher.hpp"

#include <gtest/gtest.h>

#include "fabric/mad/datagram_pool.hpp"

#include "simverbs/faults/packet_faults.hpp"

namespace simverbs {
namespace {

using fabric::NodeId;

// Node 1 and node 2; queue pair 7 is the third of node 1, and begins at PSN 0xFFFFFE.
class TwoNodes final : public PacketEnds {
  public:
    [[nodiscard]] std::optional<Origin> origin(NodeId node, std::uint32_t qpn) const override {
        return node == NodeId{1} && qpn == 7 ? std::optional(Origin{3, Psn(0xFFFFFE)})
                                             : std::nullopt;
    }
    [[nodiscard]] std::optional<NodeId> destination(const fabric::Frame& frame) const override {
        return frame.source == NodeId{1} ? NodeId{2} : NodeId{1};
    }
};

class PacketMatchers : public testing::Test {
  protected:
    // A frame from queue pair 7 of node 1 to queue pair 9 of node 2, or back.
    fabric::FramePtr frame(WireTransport transport, MessageKind kind, std::uint32_t psn) {
        fabric::FramePtr made = frames.make();
        Packet packet;
        packet.opcode = *encode_opcode(transport, kind, PacketPosition::kOnly);
        packet.psn = Psn(psn);
        const bool back = packet.operation().response();
        made->source = back ? NodeId{2} : NodeId{1};
        made->flow = back ? 9 : 7;
        packet.dest_qpn = back ? 7 : 9;
        made->transport_as<Packet>() = packet;
        return made;
    }
    fabric::FramePtr write(std::uint32_t psn) {
        return frame(WireTransport::kRc, MessageKind::kWrite, psn);
    }
    fabric::FramePtr ack(std::uint32_t psn) {
        return frame(WireTransport::kRc, MessageKind::kAck, psn);
    }
    bool matches(const PacketPattern& pattern, const fabric::FramePtr& of) {
        return PacketMatcher(pattern, ends).matches(*of);
    }

    fabric::FramePool frames;
    TwoNodes ends;
};

TEST_F(PacketMatchers, TakeEverythingWhereNothingIsAsked) {
    EXPECT_TRUE(matches({}, write(0)));
    fabric::FramePtr datagram = frames.make();
    datagram->is_management = true;
    EXPECT_TRUE(matches({}, datagram));
    EXPECT_TRUE(matches({.management = true}, datagram));
    EXPECT_FALSE(matches({.management = true}, write(0)));
    EXPECT_FALSE(matches({.direction = SIMVERBS_REQUESTS}, datagram));
}

// A management datagram from node 1 to node 2.
class DatagramMatchers : public PacketMatchers {
  protected:
    fabric::FramePtr datagram(std::uint64_t management_class, std::uint64_t attribute) {
        fabric::DatagramCargo& cargo = pool.take();
        cargo.datagram = {};
        cargo.datagram.set(fabric::mad::header::kClass, management_class);
        cargo.datagram.set(fabric::mad::header::kAttributeId, attribute);
        fabric::FramePtr made = frames.make();
        made->is_management = true;
        made->source = NodeId{1};
        made->cargo = &cargo;
        return made;
    }

    fabric::DatagramPool pool;
};

TEST_F(DatagramMatchers, TellMessagesOfCommunicationManagementByName) {
    const fabric::FramePtr req = datagram(7, 0x0010);
    const fabric::FramePtr sidr_req = datagram(7, 0x0017);
    const PacketPattern any{.cm_messages = cm_messages_named("CM")};
    const PacketPattern reqs{.cm_messages = cm_messages_named("CM_REQ")};
    EXPECT_TRUE(matches(reqs, req));
    EXPECT_FALSE(matches(reqs, sidr_req));
    EXPECT_TRUE(matches(any, sidr_req));
    EXPECT_FALSE(matches(any, write(0)));
    EXPECT_FALSE(matches(any, datagram(4, 0x0012))) << "PortCounters has the attribute id of a REJ";
    EXPECT_FALSE(matches({.from = {NodeId{2}}, .cm_messages = cm_messages_named("CM")}, req));
    EXPECT_TRUE(matches({.management = true}, req));
    EXPECT_TRUE(matches({}, req));
    EXPECT_EQ(PacketMatcher({}, ends).describe(*sidr_req).operation, "CM_SIDR_REQ");
    EXPECT_EQ(PacketMatcher({}, ends).describe(*datagram(4, 0x0012)).operation, "MAD");
    EXPECT_EQ(PacketMatcher({}, ends).describe(*datagram(7, 0x0001)).operation, "MAD")
        << "ClassPortInfo";
}

TEST(CmMessagesNamed, AreThoseThatBeginWithTheWords) {
    EXPECT_EQ(cm_messages_named("CM").count(), 11U);
    EXPECT_EQ(cm_messages_named("CM_SIDR").count(), 2U);
    EXPECT_EQ(cm_messages_named("CM_RE").count(), 0U);
    EXPECT_EQ(cm_messages_named("REQ").count(), 0U);
    EXPECT_EQ(cm_messages_named("").count(), 0U);
    EXPECT_TRUE(cm_messages_named("CM_DREP").test(static_cast<std::size_t>(CmMessage::kDrep)));
}

TEST_F(PacketMatchers, CountPsnsFromTheFirstAcrossTheWrap) {
    EXPECT_TRUE(matches({.relative_psn = 1}, write(0xFFFFFE)));
    EXPECT_TRUE(matches({.relative_psn = 3}, write(0)));
    EXPECT_FALSE(matches({.relative_psn = 3}, write(1)));
    EXPECT_TRUE(matches({.relative_psn = 3}, ack(0))) << "of the requester's";
}

TEST_F(PacketMatchers, TellQueuePairsByNumberAndByOrder) {
    EXPECT_TRUE(matches({.qpn = 7}, write(0)));
    EXPECT_TRUE(matches({.qpn = 7}, ack(0)));
    EXPECT_FALSE(matches({.qpn = 9}, ack(0))) << "it asked for nothing";
    EXPECT_TRUE(matches({.ordinal = 3}, write(0)));
    EXPECT_TRUE(matches({.ordinal = 3}, ack(0)));
    EXPECT_FALSE(matches({.ordinal = 2}, write(0)));
}

TEST_F(PacketMatchers, TellDirectionsAndHosts) {
    EXPECT_TRUE(matches({.direction = SIMVERBS_REQUESTS}, write(0)));
    EXPECT_FALSE(matches({.direction = SIMVERBS_REQUESTS}, ack(0)));
    EXPECT_TRUE(matches({.direction = SIMVERBS_RESPONSES}, ack(0)));
    EXPECT_TRUE(matches({.from = {NodeId{1}}, .to = {NodeId{2}}}, write(0)));
    EXPECT_FALSE(matches({.from = {NodeId{2}}}, write(0)));
    EXPECT_FALSE(matches({.to = {NodeId{1}}}, write(0)));
}

TEST_F(PacketMatchers, DescribeWhatTheyMatched) {
    const fabric::FrameDescription what = PacketMatcher({}, ends).describe(*write(5));
    EXPECT_EQ(what.operation, "RDMA_WRITE_ONLY");
    EXPECT_EQ(what.relative_psn, 8U) << "the first is 0xFFFFFE";
    EXPECT_EQ(what.to_flow, 9U);
}

TEST(OpcodesNamed, AreThoseThatBeginWithTheWords) {
    EXPECT_EQ(opcodes_named("CNP").count(), 1U);
    EXPECT_TRUE(opcodes_named("SEND").test(0x04));
    EXPECT_TRUE(opcodes_named("SEND").test(0x64)) << "UD";
    EXPECT_FALSE(opcodes_named("SEND").test(0x06));
    EXPECT_TRUE(opcodes_named("RDMA_READ_RESPONSE").test(0x0D));
    EXPECT_FALSE(opcodes_named("RDMA_READ_RESPONSE").test(0x0C));
    EXPECT_TRUE(opcodes_named("SEN").none());
    EXPECT_TRUE(opcodes_named("").none());
    EXPECT_TRUE(opcodes_named("reserved").none());
}

TEST(OpcodesNamed, MayBeginWithTheirService) {
    const std::bitset<256> ud = opcodes_named("UD");
    EXPECT_EQ(ud.count(), 2U);
    EXPECT_TRUE(ud.test(0x64) && ud.test(0x65));
    EXPECT_EQ(opcodes_named("UD_SEND"), ud);
    EXPECT_EQ(opcodes_named("UD_SEND_ONLY"), ud) << "SEND_ONLY_IMM begins with it";
    EXPECT_EQ(opcodes_named("UD_SEND_ONLY_IMM").count(), 1U);
    EXPECT_EQ(opcodes_named("RC") & ud, std::bitset<256>());
    EXPECT_TRUE(opcodes_named("RC").test(0x11)) << "ACKNOWLEDGE";
    EXPECT_TRUE(opcodes_named("XRC_SEND_ONLY").test(0xA4));
    EXPECT_FALSE(opcodes_named("RC").test(0x81)) << "CNP has no service";
    EXPECT_TRUE(opcodes_named("UD_").none());
    EXPECT_TRUE(opcodes_named("UD_CNP").none());
    EXPECT_TRUE(opcodes_named("U").none());
}

TEST(HeaderFields, HoldWhatHasAMeaning) {
    EXPECT_TRUE(holds(SIMVERBS_HEADER_OPCODE, 0x11));
    EXPECT_FALSE(holds(SIMVERBS_HEADER_OPCODE, 0x1F));
    EXPECT_TRUE(holds(SIMVERBS_HEADER_SYNDROME, 0x60));
    EXPECT_FALSE(holds(SIMVERBS_HEADER_SYNDROME, 0x40));
    EXPECT_FALSE(holds(SIMVERBS_HEADER_PSN, 1U << 24));
    EXPECT_TRUE(holds(SIMVERBS_HEADER_REMOTE_ADDRESS, UINT64_MAX));
    EXPECT_FALSE(holds(SIMVERBS_HEADER_ACK_REQUEST, 2));
}

}  // namespace
}  // namespace simverbs
