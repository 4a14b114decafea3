// Segmentation offload (TSO): one request, several frames, each a whole TCP segment.
#include <arpa/inet.h>

#include "raw_packets.hpp"

namespace verbs_test {
namespace {

constexpr std::uint16_t kHeaderBytes = 14 + 20 + 20;
constexpr std::uint16_t kMss = 100;
constexpr std::size_t kData = 4096;      // in the sender's memory
constexpr std::size_t kSlots = 1 << 16;  // in the receiver's, 2048 bytes each
constexpr std::uint32_t kSequence = 0xFFFFFF80;
constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kPush = 0x08;
constexpr std::uint8_t kAck = 0x10;
constexpr std::uint8_t kCwr = 0x80;

class Segmentation : public RawPackets {
  protected:
    void SetUp() override {
        RawPackets::SetUp();
        segmenter = make_segmenter(64, IBV_QP_EX_WITH_TSO | IBV_QP_EX_WITH_SEND);
        ASSERT_NE(segmenter, nullptr) << std::strerror(errno);
        start(segmenter);
        ASSERT_EQ(steer(Rule(eth_to_b())), 0);
        for (std::size_t i = 0; i < 2000; ++i) {
            a->at(kData)[i] = static_cast<std::uint8_t>(i * 7);
        }
        write_header();
    }
    void TearDown() override {
        EXPECT_EQ(ibv_destroy_qp(segmenter), 0);
        RawPackets::TearDown();
    }
    ibv_qp* make_segmenter(std::uint16_t header, std::uint64_t operations) {
        ibv_qp_init_attr_ex init{};
        init.qp_type = IBV_QPT_RAW_PACKET;
        init.send_cq = init.recv_cq = a->cq;
        init.cap = Connection{}.cap;
        init.pd = a->pd;
        init.max_tso_header = header;
        init.send_ops_flags = operations;
        init.comp_mask =
            IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        return ibv_create_qp_ex(a->context, &init);
    }
    void write_header() {
        header = {};
        mac_of(*b, header.data());
        mac_of(*a, header.data() + 6);
        const std::uint8_t ip[] = {0x08, 0x00, 0x45, 0,   0,  0, 0x12, 0x34, 0x40, 0, 64,
                                   6,    0,    0,    127, 77, 0, 0,    127,  77,   0, 1};
        std::copy(std::begin(ip), std::end(ip), header.begin() + 12);
        const std::uint32_t sequence = htonl(kSequence);
        std::memcpy(header.data() + 38, &sequence, sizeof sequence);
        header[46] = 0x50;
        header[47] = kCwr | kAck | kPush | kFin;
    }
    int post(std::uint32_t length, std::uint16_t mss = kMss,
             unsigned flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM,
             std::uint16_t header_bytes = kHeaderBytes) {
        ibv_sge segments[] = {a->range(kData, length / 3),
                              a->range(kData + length / 3, length - length / 3)};
        ibv_send_wr wr{};
        ibv_send_wr* bad = nullptr;
        wr.wr_id = 5;
        wr.sg_list = segments;
        wr.num_sge = 2;
        wr.opcode = IBV_WR_TSO;
        wr.send_flags = flags;
        wr.tso.hdr = header.data();
        wr.tso.hdr_sz = header_bytes;
        wr.tso.mss = mss;
        return ibv_post_send(segmenter, &wr, &bad);
    }
    void post_receives(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            ibv_sge segment = b->range(kSlots + i * 2048, 2048);
            ibv_recv_wr wr{};
            ibv_recv_wr* bad = nullptr;
            wr.wr_id = i;
            wr.sg_list = &segment;
            wr.num_sge = 1;
            ASSERT_EQ(ibv_post_recv(receiver, &wr, &bad), 0);
        }
    }
    std::uint8_t* frame(std::size_t i) { return b->at(kSlots + i * 2048); }
    std::uint32_t word(std::size_t i, std::size_t offset) {
        std::uint32_t value = 0;
        std::memcpy(&value, frame(i) + offset, sizeof value);
        return ntohl(value);
    }
    std::uint32_t half(std::size_t i, std::size_t offset) { return word(i, offset) >> 16; }
    void expect_segment(std::size_t i, std::uint32_t length, bool first, bool last) {
        const ibv_wc wc = b->wait();
        EXPECT_EQ(wc.wr_id, i);
        EXPECT_EQ(wc.byte_len, kHeaderBytes + length);
        EXPECT_NE(wc.wc_flags & IBV_WC_IP_CSUM_OK, 0U);
        EXPECT_EQ(half(i, 16), 40 + length);
        EXPECT_EQ(half(i, 18), 0x1234 + i);
        EXPECT_EQ(word(i, 38), static_cast<std::uint32_t>(kSequence + i * kMss)) << "it wraps";
        EXPECT_EQ(frame(i)[47] & kCwr, first ? kCwr : 0);
        EXPECT_EQ(frame(i)[47] & (kFin | kPush), last ? kFin | kPush : 0);
        EXPECT_EQ(frame(i)[47] & kAck, kAck);
        EXPECT_EQ(std::memcmp(frame(i) + kHeaderBytes, a->at(kData + i * kMss), length), 0);
        EXPECT_EQ(std::memcmp(frame(i), header.data(), 12), 0);
    }

    ibv_qp* segmenter = nullptr;
    std::array<std::uint8_t, 128> header{};
};

TEST_F(Segmentation, IsSaidByTheDevice) {
    ibv_device_attr_ex attr{};
    ASSERT_EQ(ibv_query_device_ex(a->context, nullptr, &attr), 0);
    EXPECT_GE(attr.tso_caps.max_tso, 65536U);
    EXPECT_EQ(attr.tso_caps.supported_qpts, 1U << IBV_QPT_RAW_PACKET);
}

TEST_F(Segmentation, EachFrameIsAWholeSegment) {
    post_receives(4);
    ASSERT_EQ(post(350), 0);
    expect_segment(0, 100, true, false);
    expect_segment(1, 100, false, false);
    expect_segment(2, 100, false, false);
    expect_segment(3, 50, false, true);
    const ibv_wc wc = a->wait();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_TSO);
    EXPECT_EQ(wc.wr_id, 5U);
    EXPECT_TRUE(a->drain().empty()) << "one completion";
}

TEST_F(Segmentation, ByFunctionAndTheHeaderIsCopied) {
    post_receives(2);
    ibv_qp_ex* functions = ibv_qp_to_qp_ex(segmenter);
    ibv_wr_start(functions);
    functions->wr_id = 5;
    functions->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
    std::array<std::uint8_t, 128> passing = header;
    ibv_wr_send_tso(functions, passing.data(), kHeaderBytes, kMss);
    passing.fill(0xEE);
    ibv_wr_set_sge(functions, a->mr->lkey, a->address(kData), 150);
    ASSERT_EQ(ibv_wr_complete(functions), 0);
    expect_segment(0, 100, true, false);
    expect_segment(1, 50, false, true);
    EXPECT_EQ(a->wait().opcode, IBV_WC_TSO);
}

TEST_F(Segmentation, WhatFitsIntoOneIsOne) {
    post_receives(1);
    ASSERT_EQ(post(kMss), 0);
    expect_segment(0, kMss, true, true);
}

TEST_F(Segmentation, TakesTurnsWithOtherSendsInOrder) {
    post_receives(16);
    ASSERT_EQ(post(1500, kMss), 0);
    write_datagram();
    ibv_qp* plain = std::exchange(sender, segmenter);
    EXPECT_EQ(post_send(), 0);
    sender = plain;
    for (std::size_t i = 0; i < 15; ++i) {
        expect_segment(i, kMss, i == 0, i == 14);
    }
    EXPECT_EQ(b->wait().byte_len, kFrameBytes);
    EXPECT_EQ(a->wait().opcode, IBV_WC_TSO);
    EXPECT_EQ(a->wait().opcode, IBV_WC_SEND);
}

TEST_F(Segmentation, IsPacedFrameByFrame) {
    ibv_qp_attr attr{};
    attr.rate_limit = 8'000;  // a byte a microsecond
    ASSERT_EQ(ibv_modify_qp(segmenter, &attr, IBV_QP_RATE_LIMIT), 0);
    post_receives(3);
    const std::int64_t begin = now_us();
    ASSERT_EQ(post(300), 0);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    }
    const std::int64_t took = now_us() - begin;
    EXPECT_GE(took, 2 * (kHeaderBytes + kMss));
    EXPECT_LT(took, 3 * (kHeaderBytes + kMss));
}

TEST_F(Segmentation, WithoutChecksumsTheHeadersAreTheProgramsOwn) {
    post_receives(2);
    header[24] = 0xAB;
    ASSERT_EQ(post(150, kMss, IBV_SEND_SIGNALED), 0);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.wc_flags & IBV_WC_IP_CSUM_OK, 0U);
    EXPECT_EQ(frame(0)[24], 0xAB);
}

TEST_F(Segmentation, WhatCannotBeIsRefused) {
    EXPECT_EQ(post(100, 0), EINVAL);
    EXPECT_EQ(post(100, kMss, IBV_SEND_SIGNALED, 13), EINVAL);
    EXPECT_EQ(post(100, kMss, IBV_SEND_SIGNALED, 65), EINVAL);
    EXPECT_EQ(post(100, kMss, IBV_SEND_SIGNALED | IBV_SEND_INLINE), EINVAL);
    errno = 0;
    EXPECT_EQ(make_segmenter(10'000, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_UD;
    init.send_cq = init.recv_cq = a->cq;
    init.cap = Connection{}.cap;
    init.pd = a->pd;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    init.max_tso_header = 64;
    EXPECT_EQ(ibv_create_qp_ex(a->context, &init), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ASSERT_EQ(post(100), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(Segmentation, FramesAboveTheMtuAreLocLen) {
    ASSERT_EQ(post(2000, 1999), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_LEN_ERR);
}

TEST_F(Segmentation, AHeaderThatIsNotTcpIsLocQpOp) {
    header[23] = 17;
    ASSERT_EQ(post(300), 0);
    const ibv_wc wc = a->wait();
    EXPECT_EQ(wc.status, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(wc.wr_id, 5U);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(segmenter, &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_SQE);
}

}  // namespace
}  // namespace verbs_test
