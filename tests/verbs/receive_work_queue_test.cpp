// Work queues, indirection tables and the queue pairs that spread frames over them.
#include <arpa/inet.h>

#include "raw_packets.hpp"

namespace verbs_test {
namespace {

// The key of Microsoft's verification suite.
constexpr std::uint8_t kKey[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                   0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                   0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                   0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
constexpr std::uint64_t kIpv4Fields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
constexpr std::uint64_t kUdpFields = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

class WorkQueues : public RawPackets {
  protected:
    static constexpr std::uint32_t kLogQueues = 2;
    static constexpr std::size_t kQueues = 1U << kLogQueues;

    void SetUp() override {
        RawPackets::SetUp();
        for (ibv_wq*& wq : wqs) {
            wq = make_wq();
            ASSERT_NE(wq, nullptr);
        }
    }
    void TearDown() override {
        for (ibv_flow* flow : flows) {
            EXPECT_EQ(ibv_destroy_flow(flow), 0);
        }
        flows.clear();
        if (spreader != nullptr) {
            EXPECT_EQ(ibv_destroy_qp(spreader), 0);
        }
        if (table != nullptr) {
            EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
        }
        for (ibv_wq* wq : wqs) {
            EXPECT_EQ(ibv_destroy_wq(wq), 0);
        }
        RawPackets::TearDown();
    }

    ibv_wq_init_attr wq_attributes() {
        ibv_wq_init_attr init{};
        init.wq_type = IBV_WQT_RQ;
        init.max_wr = 4;
        init.max_sge = 1;
        init.pd = b->pd;
        init.cq = b->cq;
        return init;
    }
    ibv_wq* make_wq() {
        ibv_wq_init_attr init = wq_attributes();
        return ibv_create_wq(b->context, &init);
    }
    int refusal(ibv_wq_init_attr init) {
        errno = 0;
        EXPECT_EQ(ibv_create_wq(b->context, &init), nullptr);
        return errno;
    }
    static int move(ibv_wq* wq, ibv_wq_state to) {
        ibv_wq_attr attr{};
        attr.attr_mask = IBV_WQ_ATTR_STATE;
        attr.wq_state = to;
        return ibv_modify_wq(wq, &attr);
    }
    int post(ibv_wq* wq, std::uint64_t id, std::uint32_t length = 4096) {
        ibv_sge segment = b->range(kInbox, length);
        ibv_recv_wr wr{};
        ibv_recv_wr* bad = nullptr;
        wr.wr_id = id;
        wr.sg_list = &segment;
        wr.num_sge = 1;
        const int error = ibv_post_wq_recv(wq, &wr, &bad);
        EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
        return error;
    }

    ibv_rwq_ind_table* make_table(std::vector<ibv_wq*> entries, std::uint32_t log_size) {
        ibv_rwq_ind_table_init_attr init{};
        init.log_ind_tbl_size = log_size;
        init.ind_tbl = entries.data();
        return ibv_create_rwq_ind_table(b->context, &init);
    }
    ibv_qp_init_attr_ex spread_attributes(std::uint64_t fields) {
        ibv_qp_init_attr_ex init{};
        init.qp_type = IBV_QPT_RAW_PACKET;
        init.comp_mask =
            IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
        init.pd = b->pd;
        init.rwq_ind_tbl = table;
        init.rx_hash_conf.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
        init.rx_hash_conf.rx_hash_key_len = sizeof kKey;
        init.rx_hash_conf.rx_hash_key = const_cast<std::uint8_t*>(kKey);
        init.rx_hash_conf.rx_hash_fields_mask = fields;
        return init;
    }
    int refusal(ibv_qp_init_attr_ex init) {
        errno = 0;
        EXPECT_EQ(ibv_create_qp_ex(b->context, &init), nullptr);
        return errno;
    }
    // Everything for `b` goes to the queues by its hash; each has a receive with its index as id.
    void spread(std::uint64_t fields) {
        table = make_table({wqs.begin(), wqs.end()}, kLogQueues);
        ASSERT_NE(table, nullptr);
        ibv_qp_init_attr_ex init = spread_attributes(fields);
        spreader = ibv_create_qp_ex(b->context, &init);
        ASSERT_NE(spreader, nullptr) << std::strerror(errno);
        Rule rule(eth_to_b());
        flows.push_back(ibv_create_flow(spreader, &rule.attr));
        ASSERT_NE(flows.back(), nullptr);
        for (std::size_t i = 0; i < kQueues; ++i) {
            ASSERT_EQ(move(wqs[i], IBV_WQS_RDY), 0);
            ASSERT_EQ(post(wqs[i], i), 0);
        }
    }
    void write_flow(const char* source, const char* destination, std::uint16_t source_port,
                    std::uint16_t destination_port) {
        write_datagram();
        std::uint8_t* frame = a->at();
        ASSERT_EQ(inet_pton(AF_INET, source, frame + 26), 1);
        ASSERT_EQ(inet_pton(AF_INET, destination, frame + 30), 1);
        const std::uint16_t ports[] = {htons(source_port), htons(destination_port)};
        std::memcpy(frame + 34, ports, sizeof ports);
    }
    ibv_wc send_and_wait() {
        EXPECT_EQ(post_send(0), 0);
        return b->wait();
    }

    std::array<ibv_wq*, kQueues> wqs{};
    ibv_rwq_ind_table* table = nullptr;
    ibv_qp* spreader = nullptr;
};

TEST_F(WorkQueues, AreMadeAsAskedFor) {
    EXPECT_EQ(wqs[0]->context, b->context);
    EXPECT_EQ(wqs[0]->pd, b->pd);
    EXPECT_EQ(wqs[0]->cq, b->cq);
    EXPECT_EQ(wqs[0]->state, IBV_WQS_RESET);
    EXPECT_EQ(wqs[0]->wq_type, IBV_WQT_RQ);
    EXPECT_NE(wqs[0]->wq_num, wqs[1]->wq_num);
    ibv_device_attr_ex attr{};
    ASSERT_EQ(ibv_query_device_ex(b->context, nullptr, &attr), 0);
    EXPECT_GT(attr.max_wq_type_rq, 0U);
    EXPECT_EQ(attr.rss_caps.supported_qpts, 1U << IBV_QPT_RAW_PACKET);
    EXPECT_EQ(attr.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
    EXPECT_EQ(attr.rss_caps.rx_hash_fields_mask & (kIpv4Fields | kUdpFields),
              kIpv4Fields | kUdpFields);
    EXPECT_GT(attr.rss_caps.max_rwq_indirection_tables, 0U);
    EXPECT_GE(attr.rss_caps.max_rwq_indirection_table_size, kQueues);
}

TEST_F(WorkQueues, ThatCannotBeAreRefused) {
    ibv_wq_init_attr init = wq_attributes();
    init.max_wr = 0;
    EXPECT_EQ(refusal(init), EINVAL);
    init.max_wr = 1U << 30;
    EXPECT_EQ(refusal(init), EINVAL);
    init = wq_attributes();
    init.max_sge = 1000;
    EXPECT_EQ(refusal(init), EINVAL);
    init = wq_attributes();
    init.pd = nullptr;
    EXPECT_EQ(refusal(init), EINVAL);
    init = wq_attributes();
    init.cq = nullptr;
    EXPECT_EQ(refusal(init), EINVAL);
    init = wq_attributes();
    init.comp_mask = IBV_WQ_INIT_ATTR_RESERVED;
    EXPECT_EQ(refusal(init), EINVAL);
    init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
    init.create_flags = IBV_WQ_FLAGS_RESERVED;
    EXPECT_EQ(refusal(init), EINVAL);
    // The device says of one that it has it not (raw_packet_caps).
    ibv_device_attr_ex attr{};
    ASSERT_EQ(ibv_query_device_ex(b->context, nullptr, &attr), 0);
    EXPECT_EQ(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_DELAY_DROP, 0U);
    init.create_flags = IBV_WQ_FLAGS_DELAY_DROP;
    EXPECT_EQ(refusal(init), EOPNOTSUPP);
}

TEST_F(WorkQueues, FlagsWorkWhereTheDeviceReportsThem) {
    ibv_device_attr_ex attr{};
    ASSERT_EQ(ibv_query_device_ex(b->context, nullptr, &attr), 0);
    EXPECT_NE(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, 0U);
    EXPECT_NE(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_SCATTER_FCS, 0U);
    EXPECT_NE(attr.device_cap_flags_ex & IBV_DEVICE_PCI_WRITE_END_PADDING, 0U);
    ASSERT_EQ(ibv_destroy_wq(wqs[0]), 0);
    ibv_wq_init_attr init = wq_attributes();
    init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
    init.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS |
                        IBV_WQ_FLAGS_PCI_WRITE_END_PADDING;
    wqs[0] = ibv_create_wq(b->context, &init);
    ASSERT_NE(wqs[0], nullptr) << std::strerror(errno);
    spread(IBV_RX_HASH_SRC_IPV6);
    write_tagged_datagram(0x6005);
    std::memset(b->at(kInbox), 0xEE, 4096);
    const ibv_wc tagged = send_and_wait();
    EXPECT_EQ(tagged.byte_len, kFrameBytes);  // 4 bytes less and 4 bytes more
    EXPECT_EQ(b->at(kInbox)[kFrameBytes], 0xEE) << "nothing is written behind the frame";

    // Stripping may end and begin again, in any state; the others stay as they are.
    const auto set_flags = [this](std::uint32_t mask, std::uint32_t flags) {
        ibv_wq_attr change{};
        change.attr_mask = IBV_WQ_ATTR_FLAGS;
        change.flags_mask = mask;
        change.flags = flags;
        return ibv_modify_wq(wqs[0], &change);
    };
    EXPECT_EQ(set_flags(IBV_WQ_FLAGS_CVLAN_STRIPPING, 0), 0);
    ASSERT_EQ(post(wqs[0], 1), 0);
    EXPECT_EQ(send_and_wait().byte_len, kFrameBytes + 4);
    EXPECT_EQ(set_flags(IBV_WQ_FLAGS_CVLAN_STRIPPING, IBV_WQ_FLAGS_CVLAN_STRIPPING), 0);
    ASSERT_EQ(post(wqs[0], 2), 0);
    EXPECT_EQ(send_and_wait().byte_len, kFrameBytes);
    EXPECT_EQ(set_flags(0, IBV_WQ_FLAGS_SCATTER_FCS), 0);
    for (const unsigned flag :
         {IBV_WQ_FLAGS_SCATTER_FCS, IBV_WQ_FLAGS_DELAY_DROP, IBV_WQ_FLAGS_PCI_WRITE_END_PADDING}) {
        EXPECT_EQ(set_flags(flag, 0), EOPNOTSUPP) << flag;
    }
}

TEST_F(WorkQueues, MoveThroughTheirStates) {
    ibv_wq* wq = wqs[0];
    EXPECT_EQ(move(wq, IBV_WQS_ERR), EINVAL);
    EXPECT_EQ(wq->state, IBV_WQS_RESET);
    EXPECT_EQ(post(wq, 1), EINVAL);
    EXPECT_EQ(move(wq, IBV_WQS_RDY), 0);
    EXPECT_EQ(wq->state, IBV_WQS_RDY);
    EXPECT_EQ(move(wq, IBV_WQS_ERR), 0);
    EXPECT_EQ(move(wq, IBV_WQS_RDY), EINVAL);
    EXPECT_EQ(wq->state, IBV_WQS_ERR);
    EXPECT_EQ(move(wq, IBV_WQS_RESET), 0);
    EXPECT_EQ(move(wq, IBV_WQS_UNKNOWN), EINVAL);
    EXPECT_EQ(wq->state, IBV_WQS_RESET);
}

TEST_F(WorkQueues, ModifyComparesTheStateThatWasAssumed) {
    ibv_wq_attr attr{};
    EXPECT_EQ(ibv_modify_wq(wqs[0], &attr), EINVAL);  // nothing asked for
    attr.attr_mask = IBV_WQ_ATTR_RESERVED;
    EXPECT_EQ(ibv_modify_wq(wqs[0], &attr), EINVAL);
    attr.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
    attr.wq_state = IBV_WQS_RDY;
    attr.curr_wq_state = IBV_WQS_ERR;
    EXPECT_EQ(ibv_modify_wq(wqs[0], &attr), EINVAL);
    EXPECT_EQ(wqs[0]->state, IBV_WQS_RESET);
    EXPECT_EQ(post(wqs[0], 1), EINVAL);
    attr.curr_wq_state = IBV_WQS_RESET;
    EXPECT_EQ(ibv_modify_wq(wqs[0], &attr), 0);
    attr.attr_mask = IBV_WQ_ATTR_FLAGS;
    attr.flags_mask = IBV_WQ_FLAGS_RESERVED;
    EXPECT_EQ(ibv_modify_wq(wqs[0], &attr), EINVAL);
}

TEST_F(WorkQueues, FlushInErrAndForgetInReset) {
    ibv_wq* wq = wqs[0];
    ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
    ASSERT_EQ(post(wq, 1), 0);
    ASSERT_EQ(post(wq, 2), 0);
    ASSERT_EQ(move(wq, IBV_WQS_ERR), 0);
    ASSERT_EQ(post(wq, 3), 0);
    for (std::uint64_t id = 1; id <= 3; ++id) {
        const ibv_wc wc = b->wait();
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(wc.qp_num, wq->wq_num);
    }
    // Completions that were not polled when it was reset are gone, and the slots are free.
    ASSERT_EQ(post(wq, 4), 0);
    ASSERT_EQ(move(wq, IBV_WQS_RESET), 0);
    EXPECT_TRUE(b->drain().empty());
    ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
    for (std::uint64_t id = 0; id < 4; ++id) {
        EXPECT_EQ(post(wq, id), 0);
    }
    EXPECT_EQ(post(wq, 5), ENOMEM);
}

TEST_F(WorkQueues, AreHeldByTheirTableAndHoldTheirOwn) {
    EXPECT_EQ(ibv_destroy_cq(b->cq), EBUSY);
    expect_reason("is used by 6 objects: QP ");
    expect_reason(", WQ ");
    table = make_table({wqs.begin(), wqs.end()}, kLogQueues);
    ASSERT_NE(table, nullptr);
    EXPECT_EQ(ibv_destroy_wq(wqs[0]), EBUSY);
    expect_reason("is used by 1 object: indirection table ");
    ibv_qp_init_attr_ex init = spread_attributes(kIpv4Fields);
    spreader = ibv_create_qp_ex(b->context, &init);
    ASSERT_NE(spreader, nullptr);
    EXPECT_EQ(ibv_destroy_rwq_ind_table(table), EBUSY);
    expect_reason("is used by 1 object: QP ");
}

TEST_F(WorkQueues, TablesThatCannotBeAreRefused) {
    const auto refused = [this](std::vector<ibv_wq*> entries, std::uint32_t log_size) {
        errno = 0;
        EXPECT_EQ(make_table(std::move(entries), log_size), nullptr);
        return errno;
    };
    EXPECT_EQ(refused({wqs[0]}, 20), EINVAL);
    EXPECT_EQ(refused({wqs[0], nullptr}, 1), EINVAL);
    ibv_wq_init_attr elsewhere = wq_attributes();
    elsewhere.pd = a->pd;
    elsewhere.cq = a->cq;
    ibv_wq* foreign = ibv_create_wq(a->context, &elsewhere);
    ASSERT_NE(foreign, nullptr);
    EXPECT_EQ(refused({wqs[0], foreign}, 1), EINVAL);
    EXPECT_EQ(ibv_destroy_wq(foreign), 0);
    ibv_rwq_ind_table_init_attr init{};
    init.ind_tbl = wqs.data();
    init.comp_mask = 1;
    EXPECT_EQ(ibv_create_rwq_ind_table(b->context, &init), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(WorkQueues, QueuePairsThatCannotSpreadAreRefused) {
    table = make_table({wqs.begin(), wqs.end()}, kLogQueues);
    ASSERT_NE(table, nullptr);
    const auto answer = [this](auto&& change) {
        ibv_qp_init_attr_ex init = spread_attributes(kIpv4Fields | kUdpFields);
        change(init);
        return refusal(init);
    };
    using Init = ibv_qp_init_attr_ex;
    EXPECT_EQ(answer([](Init& init) { init.rx_hash_conf.rx_hash_function = 2; }), EOPNOTSUPP);
    EXPECT_EQ(answer([](Init& init) { init.rx_hash_conf.rx_hash_key_len = 39; }), EINVAL);
    EXPECT_EQ(answer([](Init& init) { init.rx_hash_conf.rx_hash_key = nullptr; }), EINVAL);
    EXPECT_EQ(answer([](Init& init) { init.rx_hash_conf.rx_hash_fields_mask = 0; }), EINVAL);
    EXPECT_EQ(answer([](Init& init) {
                  init.rx_hash_conf.rx_hash_fields_mask =
                      IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_IPV6;
              }),
              EINVAL);
    EXPECT_EQ(answer([](Init& init) {
                  init.rx_hash_conf.rx_hash_fields_mask |= IBV_RX_HASH_SRC_PORT_TCP;
              }),
              EINVAL);
    EXPECT_EQ(
        answer([](Init& init) { init.rx_hash_conf.rx_hash_fields_mask |= IBV_RX_HASH_IPSEC_SPI; }),
        EOPNOTSUPP);
    EXPECT_EQ(
        answer([](Init& init) { init.rx_hash_conf.rx_hash_fields_mask |= IBV_RX_HASH_INNER; }),
        EOPNOTSUPP);
    EXPECT_EQ(answer([](Init& init) { init.rwq_ind_tbl = nullptr; }), EINVAL);
    EXPECT_EQ(answer([](Init& init) { init.comp_mask &= ~IBV_QP_INIT_ATTR_RX_HASH; }), EINVAL);
    EXPECT_EQ(answer([](Init& init) { init.comp_mask &= ~IBV_QP_INIT_ATTR_IND_TABLE; }), EINVAL);
    EXPECT_EQ(answer([](Init& init) { init.cap.max_recv_wr = 1; }), EINVAL);
    EXPECT_EQ(answer([](Init& init) { init.cap.max_send_wr = 1; }), EINVAL);
    EXPECT_EQ(answer([](Init& init) { init.qp_type = IBV_QPT_UD; }), EOPNOTSUPP);
    EXPECT_EQ(answer([](Init& init) {
                  init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
                  init.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
              }),
              EINVAL);  // that is for the work queues
}

TEST_F(WorkQueues, ASpreadingQueuePairHasNoStates) {
    spread(kIpv4Fields);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ibv_modify_qp(spreader, &attr, IBV_QP_STATE), EOPNOTSUPP);
    EXPECT_EQ(ibv_query_qp(spreader, &attr, IBV_QP_STATE, &init), EOPNOTSUPP);
    EXPECT_EQ(post_receive(spreader, *b, 1), EINVAL);
    EXPECT_EQ(spreader->recv_cq, nullptr);
}

// Flows of Microsoft's verification suite, whose hashes are published.
TEST_F(WorkQueues, TheHashChoosesTheQueue) {
    spread(kIpv4Fields | kUdpFields);
    struct Flow {
        const char* source;
        const char* destination;
        std::uint16_t source_port;
        std::uint16_t destination_port;
        std::uint32_t hash;
    };
    constexpr Flow kFlows[] = {
        {"66.9.149.187", "161.142.100.80", 2794, 1766, 0x51ccc178},
        {"199.92.111.2", "65.69.140.83", 14230, 4739, 0xc626b0ea},
        {"24.19.198.95", "12.22.207.184", 12898, 38024, 0x5c2b394a},
        {"38.27.205.30", "209.142.163.6", 48228, 2217, 0xafc7327f},
    };
    for (const Flow& flow : kFlows) {
        write_flow(flow.source, flow.destination, flow.source_port, flow.destination_port);
        const ibv_wc wc = send_and_wait();
        const std::size_t chosen = flow.hash % kQueues;
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.wr_id, chosen);
        EXPECT_EQ(wc.qp_num, wqs[chosen]->wq_num);
        EXPECT_EQ(wc.byte_len, kFrameBytes);
        EXPECT_EQ(std::memcmp(b->at(kInbox), a->at(), kFrameBytes), 0);
        EXPECT_EQ(post(wqs[chosen], chosen), 0);
    }
}

TEST_F(WorkQueues, WhatHasNoSuchFieldGoesToTheFirst) {
    spread(IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6);
    write_datagram();
    EXPECT_EQ(send_and_wait().qp_num, wqs[0]->wq_num);
}

TEST_F(WorkQueues, AFrameIsLostWhereNothingIsReadyForIt) {
    spread(IBV_RX_HASH_SRC_IPV6);
    write_datagram();
    ASSERT_EQ(move(wqs[0], IBV_WQS_RESET), 0);
    ASSERT_EQ(post_send(0), 0);
    pass(1);
    EXPECT_TRUE(b->drain().empty());
    ASSERT_EQ(move(wqs[0], IBV_WQS_RDY), 0);
    ASSERT_EQ(post_send(0), 0);  // no receive
    pass(1);
    ASSERT_EQ(post(wqs[0], 7, 10), 0);
    ASSERT_EQ(post_send(0), 0);  // too small a receive, which is kept
    pass(1);
    EXPECT_TRUE(b->drain().empty());
    ASSERT_EQ(move(wqs[0], IBV_WQS_ERR), 0);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.wr_id, 7U);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(WorkQueues, AReceiveWithABadKeyStopsItsQueueAlone) {
    spread(IBV_RX_HASH_SRC_IPV6);
    write_datagram();
    EXPECT_EQ(send_and_wait().status, IBV_WC_SUCCESS);
    ibv_sge segment = b->range(kInbox, 4096);
    segment.lkey ^= 0x10000;
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = 8;
    wr.sg_list = &segment;
    wr.num_sge = 1;
    ASSERT_EQ(ibv_post_wq_recv(wqs[0], &wr, &bad), 0);
    ASSERT_EQ(post(wqs[0], 9), 0);
    const ibv_wc wc = send_and_wait();
    EXPECT_EQ(wc.wr_id, 8U);
    EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(b->wait().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(move(wqs[0], IBV_WQS_RDY), EINVAL);  // it is in ERR
    EXPECT_EQ(move(wqs[1], IBV_WQS_RDY), 0);
}

TEST_F(WorkQueues, ADeadCompletionQueueIsFatalToThem) {
    ibv_cq* small = ibv_create_cq(b->context, 1, nullptr, nullptr, 0);
    ASSERT_NE(small, nullptr);
    ibv_wq_init_attr init = wq_attributes();
    init.cq = small;
    ibv_wq* wq = ibv_create_wq(b->context, &init);
    ASSERT_NE(wq, nullptr);
    ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
    ASSERT_EQ(post(wq, 1), 0);
    ASSERT_EQ(post(wq, 2), 0);
    table = make_table({wq}, 0);
    ASSERT_NE(table, nullptr);
    ibv_qp_init_attr_ex spreads = spread_attributes(0);
    spreader = ibv_create_qp_ex(b->context, &spreads);
    ASSERT_NE(spreader, nullptr);
    Rule rule(eth_to_b());
    flows.push_back(ibv_create_flow(spreader, &rule.attr));
    write_datagram();
    ASSERT_EQ(post_send(0), 0);
    ASSERT_EQ(post_send(0), 0);
    pass(1);
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(b->context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
    ibv_ack_async_event(&event);
    ASSERT_EQ(ibv_get_async_event(b->context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_WQ_FATAL);
    EXPECT_EQ(event.element.wq, wq);
    ibv_ack_async_event(&event);
    EXPECT_TRUE(b->events().empty());
    EXPECT_EQ(move(wq, IBV_WQS_RDY), EINVAL);  // it is in ERR
    ASSERT_EQ(ibv_destroy_flow(flows.back()), 0);
    flows.clear();
    ASSERT_EQ(ibv_destroy_qp(spreader), 0);
    ASSERT_EQ(ibv_destroy_rwq_ind_table(table), 0);
    spreader = nullptr;
    table = nullptr;
    EXPECT_EQ(ibv_destroy_wq(wq), 0);
    EXPECT_EQ(ibv_destroy_cq(small), 0);
}

}  // namespace
}  // namespace verbs_test
