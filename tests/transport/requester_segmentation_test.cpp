#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;

struct Cut {
    std::uint32_t length;
    std::vector<std::uint32_t> payloads;
};
const std::vector<Cut> kCuts = {
    {0, {0}},
    {1, {1}},
    {kMtu - 1, {kMtu - 1}},
    {kMtu, {kMtu}},
    {kMtu + 1, {kMtu, 1}},
    {9 * kMtu, std::vector<std::uint32_t>(9, kMtu)},
};

// The opcode that packet `index` of `count` has to carry, written down from IBA table 38.
std::string expected_opcode(const std::string& message, const std::string& suffix,
                            std::size_t index, std::size_t count) {
    if (count == 1) {
        return message + "_ONLY" + suffix;
    }
    if (index == 0) {
        return message + "_FIRST";
    }
    return index + 1 == count ? message + "_LAST" + suffix : message + "_MIDDLE";
}

void expect_cut(WrOpcode opcode, const std::string& message, const std::string& suffix) {
    for (const Cut& cut : kCuts) {
        RequesterUnderTest test;
        test.post(opcode, cut.length);
        ASSERT_EQ(test.effects.packets.size(), cut.payloads.size()) << cut.length;
        for (std::size_t i = 0; i < cut.payloads.size(); ++i) {
            const Packet& packet = test.effects.packets[i];
            EXPECT_EQ(packet.operation().operation,
                      expected_opcode(message, suffix, i, cut.payloads.size()));
            EXPECT_EQ(packet.payload.length, cut.payloads[i]);
            EXPECT_EQ(packet.payload.offset, i * kMtu);
            EXPECT_EQ(packet.psn.value(), 100 + i);
            EXPECT_EQ(packet.dest_qpn, kPeerQpn);
            EXPECT_EQ(packet.attempt, 1);
        }
        EXPECT_TRUE(test.effects.packets.back().ack_request);
    }
}

TEST(RequesterSegmentation, SendIsCutAtThePathMtu) {
    expect_cut(WrOpcode::kSend, "SEND", "");
}

TEST(RequesterSegmentation, SendWithImmediateCarriesItInItsLastPacket) {
    expect_cut(WrOpcode::kSendWithImm, "SEND", "_IMM");
}

TEST(RequesterSegmentation, WriteIsCutAtThePathMtu) {
    expect_cut(WrOpcode::kRdmaWrite, "RDMA_WRITE", "");
}

TEST(RequesterSegmentation, WriteWithImmediateCarriesItInItsLastPacket) {
    expect_cut(WrOpcode::kRdmaWriteWithImm, "RDMA_WRITE", "_IMM");
}

TEST(RequesterSegmentation, ReadIsOneRequestThatTakesThePsnsOfItsResponses) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 9 * kMtu);
    test.post(WrOpcode::kSend, 1);
    EXPECT_EQ(test.effects.packets[0].dma_length, 9 * kMtu);
    EXPECT_EQ(test.effects.packets[0].payload.length, 0U);
    EXPECT_THAT(test.take_psns(), ElementsAre(100, 109));
}

TEST(RequesterSegmentation, AReadOfNothingTakesOnePsn) {
    RequesterUnderTest test;
    test.post(WrOpcode::kRdmaRead, 0);
    test.post(WrOpcode::kSend, 1);
    EXPECT_THAT(test.take_psns(), ElementsAre(100, 101));
}

TEST(RequesterSegmentation, AtomicsCarryTheirOperandsWhereTheResponderLooks) {
    RequesterUnderTest test;
    test.write(WrOpcode::kAtomicCmpAndSwp, 8);
    test.write(WrOpcode::kAtomicFetchAndAdd, 8);
    for (PostedSend& send : test.effects.sends) {
        send.wqe.compare_add = 7;
        send.wqe.swap = 9;
    }
    test.doorbell();
    ASSERT_EQ(test.effects.packets.size(), 2U);
    EXPECT_EQ(test.effects.packets[0].operation().operation, "CMP_SWAP");
    EXPECT_EQ(test.effects.packets[0].compare, 7U);
    EXPECT_EQ(test.effects.packets[0].swap_add, 9U);
    EXPECT_EQ(test.effects.packets[1].operation().operation, "FETCH_ADD");
    EXPECT_EQ(test.effects.packets[1].swap_add, 7U);
}

TEST(RequesterSegmentation, PsnsWrapAt24Bits) {
    QpAttributes attributes = connected_attributes();
    attributes.sq_psn = Psn(0xFFFFFE);
    RequesterUnderTest test(attributes);
    test.post(WrOpcode::kSend, 4 * kMtu);
    EXPECT_THAT(test.take_psns(), ElementsAre(0xFFFFFE, 0xFFFFFF, 0, 1));
    test.ack(1);
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kSuccess));
    EXPECT_FALSE(test.effects.armed(EngineTimer::kAcknowledge));
}

TEST(RequesterSegmentation, SegmentsAreGatheredInOrderAndEmptyOnesAskForNoKey) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 0);
    test.effects.sends[0].segments = {{kLocal, 1000, RecordingEffects::kGoodKey},
                                      {kLocal, 0, 0xBAD},
                                      {kLocal + 5000, 100, RecordingEffects::kGoodKey}};
    test.effects.sends[0].wqe.segment_count = 3;
    test.doorbell();
    ASSERT_EQ(test.effects.packets.size(), 2U);
    const Payload& last = test.effects.packets[1].payload;
    EXPECT_EQ(last.span_count, 2U);
    EXPECT_EQ(last.spans[1].address, kLocal + 5000);
    EXPECT_EQ(last.offset, kMtu);
    EXPECT_EQ(last.length, 1100 - kMtu);
}

TEST(RequesterSegmentation, InlineBytesAreTakenFromTheRingNotFromMemory) {
    RequesterUnderTest test;
    test.write(WrOpcode::kSend, 100, SendFlag::kSignaled | SendFlag::kInline, 0xBAD);
    test.doorbell();
    ASSERT_EQ(test.effects.packets.size(), 1U);
    EXPECT_EQ(test.effects.packets[0].payload.length, 100U);
    EXPECT_TRUE(test.effects.sent.empty());
}

TEST(RequesterSegmentation, OnlyTheLastPacketIsSolicited) {
    RequesterUnderTest test;
    test.post(WrOpcode::kSend, 3 * kMtu, SendFlag::kSignaled | SendFlag::kSolicited);
    EXPECT_FALSE(test.effects.packets[0].solicited);
    EXPECT_FALSE(test.effects.packets[1].solicited);
    EXPECT_TRUE(test.effects.packets[2].solicited);
}

}  // namespace
}  // namespace simverbs::test
