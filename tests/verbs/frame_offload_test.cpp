// Operations of a queue pair of raw packets on the frames that it takes, and what its completions
// say of them: VLAN tags that are taken out, check sequences, tags of flow rules.
#include "raw_packets.hpp"

namespace verbs_test {
namespace {

constexpr std::uint16_t kTag = 0x6005;  // priority 3, VLAN 5
constexpr std::size_t kAddressBytes = 12;
constexpr std::size_t kTagBytes = 4;
constexpr std::size_t kFcsBytes = 4;

// IEEE 802.3 3.2.9, bit by bit.
std::uint32_t crc32(const std::uint8_t* bytes, std::size_t length) {
    constexpr std::uint32_t kReflectedPolynomial = 0xEDB88320;
    std::uint32_t crc = ~0U;
    for (std::size_t i = 0; i < length; ++i) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit) {
            crc = crc >> 1U ^ ((crc & 1U) != 0 ? kReflectedPolynomial : 0);
        }
    }
    return ~crc;
}

class FrameOffloads : public RawPackets {
  protected:
    void SetUp() override {
        RawPackets::SetUp();
        ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    }
    void TearDown() override {
        forget_rules();
        EXPECT_EQ(ibv_destroy_qp(receiver), 0);
        receiver = make(*b);
        EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
        RawPackets::TearDown();
    }
    void forget_rules() {
        for (ibv_flow* flow : flows) {
            EXPECT_EQ(ibv_destroy_flow(flow), 0);
        }
        flows.clear();
    }

    ibv_qp* make_with(std::uint32_t flags, ibv_qp_type type = IBV_QPT_RAW_PACKET) {
        ibv_qp_init_attr_ex init{};
        init.send_cq = init.recv_cq = ex == nullptr ? b->cq : ibv_cq_ex_to_cq(ex);
        init.cap = Connection{}.cap;
        init.qp_type = type;
        init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
        init.pd = b->pd;
        init.create_flags = flags;
        errno = 0;
        return ibv_create_qp_ex(b->context, &init);
    }
    // The receiver becomes one with these creation flags and an extended completion queue.
    void receive_with(std::uint32_t flags, std::uint64_t fields) {
        ibv_cq_init_attr_ex wanted{};
        wanted.cqe = 16;
        wanted.wc_flags = IBV_WC_STANDARD_FLAGS | fields;
        ex = ibv_create_cq_ex(b->context, &wanted);
        ASSERT_NE(ex, nullptr) << std::strerror(errno);
        forget_rules();
        ASSERT_EQ(ibv_destroy_qp(receiver), 0);
        receiver = make_with(flags);
        ASSERT_NE(receiver, nullptr) << std::strerror(errno);
        start(receiver);
        ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    }
    // The next completion of the receiver; ibv_end_poll() is due.
    void send_and_start_poll() {
        ASSERT_EQ(post_receive(receiver, *b, 9), 0);
        ASSERT_EQ(post_send(0), 0);
        ibv_poll_cq_attr attr{};
        int error = ENOENT;
        for (int i = 0; i < 1000 && error == ENOENT; ++i) {
            error = ibv_start_poll(ex, &attr);
        }
        ASSERT_EQ(error, 0);
        EXPECT_EQ(ex->status, IBV_WC_SUCCESS);
    }
    [[nodiscard]] bool came_without_its_tag() const {
        return std::memcmp(b->at(kInbox), a->at(), kAddressBytes) == 0 &&
               std::memcmp(b->at(kInbox) + kAddressBytes, a->at() + kAddressBytes + kTagBytes,
                           kFrameBytes - kAddressBytes - kTagBytes) == 0;
    }

    ibv_cq_ex* ex = nullptr;
};

TEST_F(FrameOffloads, TheTagOfACustomersVlanIsTakenOutAndReported) {
    receive_with(IBV_QP_CREATE_CVLAN_STRIPPING, IBV_WC_EX_WITH_CVLAN);
    write_tagged_datagram(kTag);
    send_and_start_poll();
    EXPECT_EQ(ibv_wc_read_cvlan(ex), kTag);
    EXPECT_EQ(ibv_wc_read_byte_len(ex), kFrameBytes - kTagBytes);
    EXPECT_TRUE(came_without_its_tag());
    ibv_end_poll(ex);

    write_datagram();
    send_and_start_poll();
    EXPECT_EQ(ibv_wc_read_cvlan(ex), 0);
    EXPECT_EQ(ibv_wc_read_byte_len(ex), kFrameBytes);
    ibv_end_poll(ex);
}

TEST_F(FrameOffloads, WithoutStrippingATaggedFrameArrivesAsItWasSent) {
    receive_with(0, IBV_WC_EX_WITH_CVLAN);
    write_tagged_datagram(kTag);
    send_and_start_poll();
    EXPECT_EQ(ibv_wc_read_cvlan(ex), 0);
    EXPECT_EQ(ibv_wc_read_byte_len(ex), kFrameBytes);
    EXPECT_EQ(std::memcmp(b->at(kInbox), a->at(), kFrameBytes), 0);
    ibv_end_poll(ex);
}

TEST_F(FrameOffloads, ATagLeavesNoRoomForOneThatWouldBeTooSmallWithIt) {
    receive_with(IBV_QP_CREATE_CVLAN_STRIPPING, IBV_WC_EX_WITH_CVLAN);
    write_tagged_datagram(kTag);
    ibv_sge segment = b->range(kInbox, kFrameBytes - kTagBytes);
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.sg_list = &segment;
    wr.num_sge = 1;
    ASSERT_EQ(ibv_post_recv(receiver, &wr, &bad), 0);
    ASSERT_EQ(post_send(0), 0);
    pass(1);
    ibv_wc wc{};
    ASSERT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(ex), 1, &wc), 1);
    EXPECT_EQ(wc.byte_len, kFrameBytes - kTagBytes);
}

TEST_F(FrameOffloads, ChecksumsOfATaggedFrameAreWrittenAndChecked) {
    receive_with(0, 0);
    write_tagged_datagram(kTag);
    ASSERT_EQ(post_receive(receiver, *b, 9), 0);
    ASSERT_EQ(post_send(IBV_SEND_IP_CSUM), 0);
    pass(1);
    ibv_wc wc{};
    ASSERT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(ex), 1, &wc), 1);
    EXPECT_NE(wc.wc_flags & IBV_WC_IP_CSUM_OK, 0U);
}

TEST_F(FrameOffloads, TheCheckSequenceOfTheFrameFollowsIt) {
    for (const bool strips : {false, true}) {
        SCOPED_TRACE(strips);
        receive_with(IBV_QP_CREATE_SCATTER_FCS | (strips ? IBV_QP_CREATE_CVLAN_STRIPPING : 0),
                     IBV_WC_EX_WITH_CVLAN);
        write_tagged_datagram(kTag);
        send_and_start_poll();
        const std::size_t length = strips ? kFrameBytes - kTagBytes : kFrameBytes;
        EXPECT_EQ(ibv_wc_read_byte_len(ex), length + kFcsBytes);
        const std::uint32_t sent = crc32(a->at(), kFrameBytes);
        std::uint32_t received = 0;
        std::memcpy(&received, b->at(kInbox) + length, sizeof received);
        EXPECT_EQ(received, sent) << "of the frame with its tag, as it was on the wire";
        ibv_end_poll(ex);
        if (!strips) {
            forget_rules();
            ASSERT_EQ(ibv_destroy_qp(receiver), 0);
            receiver = make(*b);
            ASSERT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
        }
    }
}

// A shorter frame is padded before it leaves, and the check sequence covers that.
TEST_F(FrameOffloads, AShortFrameIsPadded) {
    constexpr std::size_t kShortest = 60;
    receive_with(IBV_QP_CREATE_SCATTER_FCS, 0);
    write_datagram();
    ibv_sge segment = a->range(0, 20);
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.sg_list = &segment;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ASSERT_EQ(post_receive(receiver, *b, 9), 0);
    ASSERT_EQ(ibv_post_send(sender, &wr, &bad), 0);
    pass(1);
    ibv_wc wc{};
    ASSERT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(ex), 1, &wc), 1);
    EXPECT_EQ(wc.byte_len, kShortest + kFcsBytes);
    std::array<std::uint8_t, kShortest> padded{};
    std::copy_n(a->at(), 20, padded.begin());
    EXPECT_EQ(std::memcmp(b->at(kInbox), padded.data(), kShortest), 0);
    std::uint32_t received = 0;
    std::memcpy(&received, b->at(kInbox) + kShortest, sizeof received);
    EXPECT_EQ(received, crc32(padded.data(), kShortest));
}

// The MTU is that of what a frame carries, whatever tags its header has.
TEST_F(FrameOffloads, ATaggedFrameOfAWholeMtuPasses) {
    receive_with(IBV_QP_CREATE_CVLAN_STRIPPING, 0);
    write_tagged_datagram(kTag);
    const auto send = [this](std::uint32_t length) {
        ibv_sge segment = a->range(0, length);
        ibv_send_wr wr{};
        ibv_send_wr* bad = nullptr;
        wr.sg_list = &segment;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = IBV_SEND_SIGNALED;
        EXPECT_EQ(ibv_post_send(sender, &wr, &bad), 0);
        return a->wait().status;
    };
    EXPECT_EQ(send(14 + 4 + 1500), IBV_WC_SUCCESS);
    EXPECT_EQ(send(14 + 4 + 1501), IBV_WC_LOC_LEN_ERR);
}

TEST_F(FrameOffloads, FlagsAreForWhatTheDeviceHasAndTheServiceTakes) {
    receive_with(0, 0);
    const auto answer = [this](std::uint32_t flags, ibv_qp_type type) {
        ibv_qp* qp = make_with(flags, type);
        if (qp == nullptr) {
            return errno;
        }
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
        return 0;
    };
    constexpr std::uint32_t kAll = IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SCATTER_FCS |
                                   IBV_QP_CREATE_PCI_WRITE_END_PADDING;
    EXPECT_EQ(answer(kAll, IBV_QPT_RAW_PACKET), 0);
    EXPECT_EQ(answer(IBV_QP_CREATE_PCI_WRITE_END_PADDING, IBV_QPT_RC), 0);
    EXPECT_EQ(answer(IBV_QP_CREATE_CVLAN_STRIPPING, IBV_QPT_RC), EOPNOTSUPP);
    EXPECT_EQ(answer(IBV_QP_CREATE_SCATTER_FCS, IBV_QPT_UD), EOPNOTSUPP);
    EXPECT_EQ(answer(IBV_QP_CREATE_SOURCE_QPN, IBV_QPT_UD), EOPNOTSUPP);
}

TEST_F(FrameOffloads, ARulesTagComesWithTheCompletion) {
    constexpr std::uint32_t kMost = 0xFFFFFF;
    receive_with(0, IBV_WC_EX_WITH_FLOW_TAG);
    write_datagram();
    send_and_start_poll();
    EXPECT_EQ(ibv_wc_read_flow_tag(ex), 0U);
    ibv_end_poll(ex);
    forget_rules();

    auto tag = spec_of<ibv_flow_spec_action_tag>(IBV_FLOW_SPEC_ACTION_TAG);
    tag.tag_id = kMost;
    ASSERT_EQ(steer(Rule(eth_to_b(), tag)), 0);
    send_and_start_poll();
    EXPECT_EQ(ibv_wc_read_flow_tag(ex), kMost);
    ibv_end_poll(ex);

    tag.tag_id = kMost + 1;
    EXPECT_EQ(steer(Rule(eth_to_b(), tag)), EINVAL);
    tag.tag_id = 1;
    Rule default_rule(tag);
    default_rule.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
    EXPECT_EQ(steer(default_rule), EINVAL);
    tag.size = 8;
    EXPECT_EQ(steer(Rule(eth_to_b(), tag)), EINVAL);
}

class SoftRoceOffloads : public TwoHosts {};

TEST_F(SoftRoceOffloads, AreNone) {
    ASSERT_EQ(simverbs_set_personality("rxe"), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("eth-pair"), 0) << simverbs_last_error();
    connect();
    ibv_device_attr_ex attr{};
    ASSERT_EQ(ibv_query_device_ex(b->context, nullptr, &attr), 0);
    EXPECT_EQ(attr.raw_packet_caps, 0U);
    EXPECT_EQ(attr.device_cap_flags_ex & IBV_DEVICE_PCI_WRITE_END_PADDING, 0U);
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = b->cq;
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RC;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.pd = b->pd;
    init.create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING;
    EXPECT_EQ(ibv_create_qp_ex(b->context, &init), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 16;
    for (const std::uint64_t field : {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG}) {
        wanted.wc_flags = field;
        EXPECT_EQ(ibv_create_cq_ex(b->context, &wanted), nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
    }
}

}  // namespace
}  // namespace verbs_test
