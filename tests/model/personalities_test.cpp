// Personalities: complete, different where implementations differ, and within what they report.
#include "simverbs/model/personalities.hpp"

#include <algorithm>
#include <bit>

#include <gtest/gtest.h>

#include "simverbs/model/send_request_layout.hpp"

namespace simverbs {
namespace {

TEST(Personalities, AreFoundByName) {
    EXPECT_EQ(find_personality("spec"), &kSpec);
    EXPECT_EQ(find_personality("connectx6"), &kConnectX6);
    EXPECT_EQ(find_personality("rxe"), &kRxe);
    EXPECT_EQ(find_personality("ConnectX6"), nullptr);
}

TEST(Personalities, EveryResponderOrderHasEachCheckOnceAndActsLast) {
    for (const Personality* personality : kPersonalities) {
        ResponderOrder sorted = personality->responder_order;
        std::ranges::sort(sorted);
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            EXPECT_EQ(static_cast<std::size_t>(sorted[i]), i) << personality->name;
        }
        EXPECT_EQ(personality->responder_order[0], ResponderCheck::kDuplicate);
        EXPECT_EQ(personality->responder_order[1], ResponderCheck::kPsn);
        EXPECT_EQ(personality->responder_order[7], ResponderCheck::kExecute);
        EXPECT_EQ(personality->responder_order[8], ResponderCheck::kAcknowledge);
    }
}

TEST(Personalities, OnlySpecBelongsToNoVendor) {
    EXPECT_EQ(kConnectX6.identity.vendor_id, 0x02C9U);
    EXPECT_EQ(kConnectX6.identity.vendor_part_id, 4123U);
    EXPECT_NE(kSpec.identity.vendor_id, 0x02C9U);
    // Bit 1 of the first octet: locally administered, so no company has the number.
    EXPECT_NE(kSpec.identity.vendor_id & 0x020000U, 0U);
}

TEST(Personalities, SpecOffersWhatProgramsExpectOfANic) {
    const DeviceLimits& limits = kSpec.limits;
    EXPECT_GE(limits.max_qp, 20'000);
    EXPECT_GE(limits.max_sge, 16);
    EXPECT_GE(limits.max_srq_wr, 2'000);
    EXPECT_GE(limits.max_qp_rd_atom, 16);
    EXPECT_GE(limits.max_inline_bytes, 512U);
    EXPECT_EQ(limits.port.max_mtu, fabric::Mtu::k4096);
    EXPECT_GE(limits.max_cqe, limits.max_qp_wr);
}

TEST(Personalities, LimitsFitTogether) {
    for (const Personality* personality : kPersonalities) {
        const DeviceLimits& limits = personality->limits;
        EXPECT_GE(limits.max_total_mcast_qp_attach, limits.max_mcast_qp_attach);
        EXPECT_GE(limits.max_res_rd_atom, limits.max_qp_rd_atom);
        EXPECT_LE(limits.port.pkey_entries, limits.max_pkeys);
        EXPECT_GE(limits.page_size_cap & 4096U, 4096U);
        EXPECT_LE(limits.port.max_message_bytes, 1U << 31);
        EXPECT_EQ(limits.caps.contains(DeviceCap::kXrc), limits.max_xrcd > 0) << personality->name;
        EXPECT_EQ(limits.caps.contains(DeviceCap::kResizeMaxWr), personality->resizes_queues)
            << personality->name;
    }
}

// The figures that a real device reported.
TEST(Personalities, RxeReportsTheCapabilitiesItReported) {
    const DeviceCaps caps = kRxe.limits.caps;
    EXPECT_EQ(caps.bits, 19'020'918U);
    EXPECT_TRUE(caps.contains(DeviceCap::kMemWindow | DeviceCap::kMemWindowType2B));
    EXPECT_FALSE(caps.contains(DeviceCap::kXrc));
}

// 0x21361c36, as ibv_devinfo shows a ConnectX-6.
TEST(Personalities, ConnectX6ReportsTheCapabilitiesItReports) {
    EXPECT_EQ(kConnectX6.limits.caps.bits & 0xFFFF'FFFFU, 0x2136'1C36U);
    EXPECT_EQ(kConnectX6.limits.caps.bits >> 32U, 0x14U);  // RAW_SCATTER_FCS, PCI_WRITE_END_PADDING
}

// Worked out by hand from rdma-core v64, providers/mlx5/verbs.c.
TEST(Personalities, ConnectX6GrantsTheInlineBytesThatABlockHasRoomFor) {
    const auto granted = [](Service service, SendOperations operations,
                            const SendRequestRoom& asked) {
        return inline_bytes_in_blocks(send_header_bytes(service, operations), asked);
    };
    // 192 of a bind, 16 of a segment: four blocks.
    EXPECT_EQ(granted(Service::kRc, kAllSendOperations, {.segments = 1}), 60U);
    EXPECT_EQ(granted(Service::kRc, kAllSendOperations, {.segments = 1, .inline_bytes = 60}), 60U);
    EXPECT_EQ(granted(Service::kRc, kAllSendOperations, {.segments = 1, .inline_bytes = 61}), 124U);
    EXPECT_EQ(granted(Service::kRc, kAllSendOperations, {.segments = 30}), 508U);
    // 64 of an address, 16 of a segment: two blocks.
    EXPECT_EQ(granted(Service::kUd, kAllSendOperations, {.segments = 1}), 60U);
    // 208 with the header of XRC: four blocks, to the last byte but 44.
    EXPECT_EQ(granted(Service::kXrcIni, kAllSendOperations, {.segments = 1}), 44U);
    EXPECT_EQ(granted(Service::kRawPacket, kAllSendOperations, {.segments = 1}), 12U);
    EXPECT_EQ(
        granted(Service::kRawPacket, kAllSendOperations, {.segments = 1, .tso_header_bytes = 64}),
        76U);
    EXPECT_EQ(granted(Service::kRc, operation(WrOpcode::kSend), {.segments = 1}), 44U);
    EXPECT_EQ(granted(Service::kRc, operation(WrOpcode::kRdmaWrite), {.segments = 1}), 28U);
    EXPECT_EQ(granted(Service::kRc, operation(WrOpcode::kAtomicCmpAndSwp), {.segments = 1}), 12U);
    EXPECT_TRUE(kConnectX6.inline_fills_block);
    EXPECT_FALSE(kSpec.inline_fills_block);
}

TEST(Personalities, CapacitiesAreRoundedAsEachDeviceDoes) {
    EXPECT_EQ(rounded(16, Rounding::kNone), 16U);
    EXPECT_EQ(rounded(5, Rounding::kPowerOfTwo), 8U);
    EXPECT_EQ(rounded(0, Rounding::kPowerOfTwo), 0U);
    EXPECT_EQ(rounded(16, kRxe.cq_rounding), 31U);
    EXPECT_EQ(rounded(4, kRxe.send_queue_rounding), 7U);
    EXPECT_EQ(rounded(15, Rounding::kPowerOfTwoLessOne), 15U);
}

}  // namespace
}  // namespace simverbs
