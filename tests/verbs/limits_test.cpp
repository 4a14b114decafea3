// The limits that a device reports, and that it is where it ends: the figure works, the next does
// not.
#include <cerrno>
#include <set>
#include <vector>

#include <sys/resource.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Limits : public TwoHosts {
  protected:
    void connect_as(const char* personality) {
        ASSERT_EQ(simverbs_set_personality(personality), 0);
        connect();
        ASSERT_EQ(ibv_query_device(a->context, &device), 0);
    }
    // An errno; `granted` and `shown` are what creation and ibv_query_qp return.
    int create(ibv_qp_cap cap) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = a->cq;
        init.cap = cap;
        init.qp_type = IBV_QPT_RC;
        errno = 0;
        ibv_qp* qp = ibv_create_qp(a->pd, &init);
        if (qp == nullptr) {
            return errno;
        }
        granted = init.cap;
        ibv_qp_attr attr{};
        EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
        shown = attr.cap;
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
        return 0;
    }
    static std::vector<std::uint32_t> list(const ibv_qp_cap& cap) {
        return {cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge,
                cap.max_inline_data};
    }
    int create_cq(int entries) {
        errno = 0;
        ibv_cq* cq = ibv_create_cq(a->context, entries, nullptr, nullptr, 0);
        if (cq == nullptr) {
            return errno;
        }
        entries_granted = cq->cqe;
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
        return 0;
    }

    ibv_device_attr device{};
    ibv_qp_cap granted{};
    ibv_qp_cap shown{};
    int entries_granted = 0;
};

using Words = std::vector<std::uint32_t>;

TEST_F(Limits, QueuePairsTakeWhatIsAdvertisedAndNoMore) {
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        SCOPED_TRACE(personality);
        connect_as(personality);
        const auto wr = static_cast<std::uint32_t>(device.max_qp_wr);
        const auto sge = static_cast<std::uint32_t>(device.max_sge);
        if (wr <= 32'768) {  // else the ring alone would be large
            EXPECT_EQ(create({wr, 1, 1, 1, 0}), 0);
            EXPECT_EQ(create({1, wr, 1, 1, 0}), 0);
        }
        EXPECT_EQ(create({wr + 1, 1, 1, 1, 0}), EINVAL);
        EXPECT_EQ(create({1, wr + 1, 1, 1, 0}), EINVAL);
        EXPECT_EQ(create({1, 1, sge, sge, 0}), 0);
        EXPECT_EQ(create({1, 1, sge + 1, 1, 0}), EINVAL);
        EXPECT_EQ(create({1, 1, 1, sge + 1, 0}), EINVAL);
        EXPECT_EQ(create({1, 1, 1, 1, 512}), 0);
        EXPECT_EQ(create({1, 1, 1, 1, 513}), EINVAL);
        TearDown();
        SetUp();
    }
}

TEST_F(Limits, CompletionQueuesTakeWhatIsAdvertisedAndNoMore) {
    connect_as("rxe");
    EXPECT_EQ(create_cq(device.max_cqe), 0);
    EXPECT_EQ(entries_granted, device.max_cqe);
    EXPECT_EQ(create_cq(device.max_cqe + 1), EINVAL);
    EXPECT_EQ(ibv_resize_cq(a->cq, device.max_cqe), 0);
    EXPECT_EQ(a->cq->cqe, device.max_cqe);
    EXPECT_EQ(ibv_resize_cq(a->cq, device.max_cqe + 1), EINVAL);
    EXPECT_EQ(a->cq->cqe, device.max_cqe);
}

TEST_F(Limits, ProtectionDomainsEndAtTheAdvertisedNumber) {
    connect_as("spec");
    std::vector<ibv_pd*> all;
    for (int i = 1; i < device.max_pd; ++i) {  // one is there already
        all.push_back(ibv_alloc_pd(a->context));
        ASSERT_NE(all.back(), nullptr);
    }
    errno = 0;
    EXPECT_EQ(ibv_alloc_pd(a->context), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    ASSERT_EQ(ibv_dealloc_pd(all.back()), 0);
    all.back() = ibv_alloc_pd(a->context);
    EXPECT_NE(all.back(), nullptr);
    for (ibv_pd* pd : all) {
        ASSERT_EQ(ibv_dealloc_pd(pd), 0);
    }
}

TEST_F(Limits, SpecGrantsWhatWasAsked) {
    connect_as("spec");
    ASSERT_EQ(create({5, 7, 3, 3, 33}), 0);
    EXPECT_EQ(list(granted), (Words{5, 7, 3, 3, 33}));
    EXPECT_EQ(list(shown), list(granted));
    ASSERT_EQ(create_cq(16), 0);
    EXPECT_EQ(entries_granted, 16);
}

TEST_F(Limits, ConnectX6RoundsUpAndSaysSo) {
    connect_as("connectx6");
    ASSERT_EQ(create({5, 7, 3, 3, 33}), 0);
    EXPECT_EQ(list(granted), (Words{8, 8, 3, 3, 60}));
    EXPECT_EQ(list(shown), list(granted));
    ASSERT_EQ(create_cq(16), 0);
    EXPECT_EQ(entries_granted, 31);
}

TEST_F(Limits, RxeRoundsUpAndShowsItOnlyToAQuery) {
    connect_as("rxe");
    ASSERT_EQ(create({4, 7, 3, 3, 33}), 0);
    EXPECT_EQ(list(granted), (Words{4, 7, 3, 3, 48}));
    EXPECT_EQ(list(shown), (Words{7, 7, 3, 3, 48}));
    ASSERT_EQ(create({100, 100, 4, 4, 128}), 0);
    EXPECT_EQ(list(granted), (Words{100, 100, 8, 4, 128}));
    ASSERT_EQ(create({1, 1, 1, 1, 400}), 0);
    EXPECT_EQ(list(granted), (Words{1, 1, 25, 1, 400}));
    ASSERT_EQ(create({0, 1, 0, 1, 0}), 0);
    EXPECT_EQ(list(granted), (Words{0, 1, 0, 1, 0}));
    ASSERT_EQ(create_cq(16), 0);
    EXPECT_EQ(entries_granted, 31);
}

// More than the 65,536 numbers of a context's home.
TEST_F(Limits, AllRegionsThatAreReportedCanBeHad) {
    connect_as("spec");
    std::vector<ibv_mr*> regions;
    while (static_cast<int>(regions.size()) + 1 < device.max_mr) {  // one is there already
        ibv_mr* mr = ibv_reg_mr(a->pd, a->at(), 4096, kAllAccess);
        ASSERT_NE(mr, nullptr) << regions.size();
        regions.push_back(mr);
    }
    EXPECT_EQ(ibv_reg_mr(a->pd, a->at(), 4096, kAllAccess), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    std::set<std::uint32_t> keys;
    for (ibv_mr* mr : regions) {
        EXPECT_TRUE(keys.insert(mr->lkey).second);
    }
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .from({a->address(), 64, regions.back()->lkey})
                  .to(b->address(), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    for (ibv_mr* mr : regions) {
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
}

TEST_F(Limits, WindowsAndSharedQueuesOfConnectX6AreMoreThanAHomeHolds) {
    connect_as("connectx6");
    constexpr int kMore = 65'536 + 2;
    ASSERT_GT(device.max_mw, kMore);
    ASSERT_GT(device.max_srq, kMore);
    std::vector<ibv_mw*> windows;
    std::vector<ibv_srq*> queues;
    ibv_srq_init_attr init{};
    init.attr.max_sge = 1;
    for (int i = 0; i < kMore; ++i) {
        windows.push_back(ibv_alloc_mw(a->pd, IBV_MW_TYPE_1));
        ASSERT_NE(windows.back(), nullptr) << i;
        queues.push_back(ibv_create_srq(a->pd, &init));
        ASSERT_NE(queues.back(), nullptr) << i;
    }
    for (ibv_mw* mw : windows) {
        EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    }
    for (ibv_srq* srq : queues) {
        EXPECT_EQ(ibv_destroy_srq(srq), 0);
    }
}

// Programs open one a peer. Each needs some descriptors.
TEST_F(Limits, ADeviceHasFourThousandContexts) {
    constexpr rlim_t kContexts = 4096;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit raised = before;
    raised.rlim_cur = before.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &raised), 0);
    if (raised.rlim_cur < 4 * kContexts + 100) {
        GTEST_SKIP() << "a limit of " << raised.rlim_cur << " descriptors";
    }
    ibv_device** devices = ibv_get_device_list(nullptr);
    std::vector<ibv_context*> contexts;
    for (rlim_t i = 0; i < kContexts; ++i) {
        contexts.push_back(ibv_open_device(devices[0]));
        ASSERT_NE(contexts.back(), nullptr) << i;
    }
    ibv_free_device_list(devices);
    std::set<std::uint32_t> keys;
    for (ibv_context* context : {contexts[0], contexts[1000], contexts.back()}) {
        ibv_pd* pd = ibv_alloc_pd(context);
        int word = 0;
        ibv_mr* mr = ibv_reg_mr(pd, &word, sizeof word, IBV_ACCESS_LOCAL_WRITE);
        ASSERT_NE(mr, nullptr);
        EXPECT_TRUE(keys.insert(mr->lkey).second);
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    }
    for (ibv_context* context : contexts) {
        EXPECT_EQ(ibv_close_device(context), 0);
    }
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// ---- query_device_ex

TEST_F(Limits, ExtendedAttributesSayOnlyWhatThereIs) {
    ASSERT_EQ(simverbs_set_topology("eth-pair"), 0) << simverbs_last_error();
    connect_as("spec");
    ibv_device_attr_ex extended{};
    ASSERT_EQ(ibv_query_device_ex(a->context, nullptr, &extended), 0);
    EXPECT_EQ(extended.comp_mask, 0U);
    EXPECT_EQ(extended.phys_port_cnt_ex, 1U);
    // Capabilities without room in the older member; the header has no name yet for three of these
    // bits.
    constexpr std::uint64_t kFlushAndAtomicWrite = 7ULL << 38U;
    EXPECT_EQ(extended.device_cap_flags_ex, device.device_cap_flags | IBV_DEVICE_RAW_SCATTER_FCS |
                                                IBV_DEVICE_PCI_WRITE_END_PADDING |
                                                kFlushAndAtomicWrite);
    EXPECT_EQ(extended.hca_core_clock, 1'000'000U);
    EXPECT_EQ(extended.completion_timestamp_mask, ~std::uint64_t{0});
    EXPECT_EQ(extended.cq_mod_caps.max_cq_count, 65'535);
    EXPECT_EQ(extended.tm_caps.max_rndv_hdr_size, 64U);
    EXPECT_EQ(extended.tm_caps.max_num_tags, 127U);
    EXPECT_EQ(extended.tm_caps.flags, static_cast<unsigned>(IBV_TM_CAP_RC));
    EXPECT_EQ(extended.tm_caps.max_ops, 32'768U);
    EXPECT_EQ(extended.tm_caps.max_sge, 1U);
    EXPECT_EQ(extended.tso_caps.max_tso, 262'144U);
    EXPECT_EQ(extended.tso_caps.supported_qpts, 1U << IBV_QPT_RAW_PACKET);
    EXPECT_EQ(extended.rss_caps.supported_qpts, 1U << IBV_QPT_RAW_PACKET);
    EXPECT_EQ(extended.max_wq_type_rq, 8'192U);
    EXPECT_EQ(extended.packet_pacing_caps.supported_qpts, 1U << IBV_QPT_RAW_PACKET);
    EXPECT_EQ(extended.packet_pacing_caps.qp_rate_limit_min, 1'000U);
    EXPECT_EQ(extended.packet_pacing_caps.qp_rate_limit_max, 100'000'000U);
    EXPECT_EQ(extended.raw_packet_caps,
              static_cast<unsigned>(IBV_RAW_PACKET_CAP_CVLAN_STRIPPING |
                                    IBV_RAW_PACKET_CAP_SCATTER_FCS | IBV_RAW_PACKET_CAP_IP_CSUM));
}

// Raw packets, and what works on them or by them, are Ethernet's.
TEST_F(Limits, OnInfinibandNothingOfEthernetIsReportedOrWorks) {
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        SCOPED_TRACE(personality);
        connect_as(personality);
        ibv_device_attr_ex extended{};
        ASSERT_EQ(ibv_query_device_ex(a->context, nullptr, &extended), 0);
        constexpr std::uint64_t kOfEthernet =
            IBV_DEVICE_RAW_SCATTER_FCS | IBV_DEVICE_RAW_IP_CSUM |
            static_cast<unsigned>(IBV_DEVICE_MANAGED_FLOW_STEERING);
        EXPECT_EQ(device.device_cap_flags & kOfEthernet, 0U);
        EXPECT_EQ(extended.device_cap_flags_ex & kOfEthernet, 0U);
        EXPECT_EQ(device.max_raw_ethy_qp, 0);
        EXPECT_EQ(extended.raw_packet_caps, 0U);
        EXPECT_EQ(extended.tso_caps.max_tso, 0U);
        EXPECT_EQ(extended.tso_caps.supported_qpts, 0U);
        EXPECT_EQ(extended.rss_caps.supported_qpts, 0U);
        EXPECT_EQ(extended.rss_caps.rx_hash_fields_mask, 0U);
        EXPECT_EQ(extended.max_wq_type_rq, 0U);
        EXPECT_EQ(extended.packet_pacing_caps.qp_rate_limit_max, 0U);
        EXPECT_EQ(extended.packet_pacing_caps.supported_qpts, 0U);
        ibv_qp_init_attr raw{};
        raw.send_cq = raw.recv_cq = a->cq;
        raw.cap = Connection{}.cap;
        raw.qp_type = IBV_QPT_RAW_PACKET;
        EXPECT_EQ(ibv_create_qp(a->pd, &raw), nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
        ibv_wq_init_attr wq{};
        wq.wq_type = IBV_WQT_RQ;
        wq.max_wr = wq.max_sge = 1;
        wq.pd = a->pd;
        wq.cq = a->cq;
        EXPECT_EQ(ibv_create_wq(a->context, &wq), nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
        ibv_flow_attr rule{};
        rule.type = IBV_FLOW_ATTR_ALL_DEFAULT;
        rule.size = sizeof rule;
        rule.port = 1;
        EXPECT_EQ(ibv_create_flow(a->qp, &rule), nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
        ibv_qp_rate_limit_attr rate{};
        EXPECT_EQ(ibv_modify_qp_rate_limit(a->qp, &rate), EOPNOTSUPP);
        TearDown();
        TwoHosts::SetUp();
    }
}

TEST_F(Limits, ExtendedAttributesOfRxe) {
    connect_as("rxe");
    ibv_device_attr_ex extended{};
    ASSERT_EQ(ibv_query_device_ex(a->context, nullptr, &extended), 0);
    EXPECT_EQ(extended.hca_core_clock, 0U);
    EXPECT_EQ(extended.completion_timestamp_mask, 0U);
    EXPECT_EQ(extended.cq_mod_caps.max_cq_count, 0);
    EXPECT_EQ(extended.phys_port_cnt_ex, 1U);
    EXPECT_EQ(extended.max_wq_type_rq, 0U);
    EXPECT_EQ(extended.rss_caps.supported_qpts, 0U);
    ibv_wq_init_attr wq{};
    wq.wq_type = IBV_WQT_RQ;
    wq.max_wr = wq.max_sge = 1;
    wq.pd = a->pd;
    wq.cq = a->cq;
    EXPECT_EQ(ibv_create_wq(a->context, &wq), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_counters_init_attr counters{};
    EXPECT_EQ(ibv_create_counters(a->context, &counters), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(extended.tso_caps.max_tso, 0U);
    ibv_qp_init_attr_ex datagram{};
    datagram.qp_type = IBV_QPT_UD;
    datagram.send_cq = datagram.recv_cq = a->cq;
    datagram.pd = a->pd;
    datagram.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    datagram.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    EXPECT_EQ(ibv_create_qp_ex(a->context, &datagram), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_qp_rate_limit_attr rate{};
    EXPECT_EQ(ibv_modify_qp_rate_limit(a->qp, &rate), EOPNOTSUPP);
    ibv_qp_attr paced{};
    EXPECT_EQ(ibv_modify_qp(a->qp, &paced, IBV_QP_RATE_LIMIT), EOPNOTSUPP);
    ibv_rwq_ind_table_init_attr table{};
    EXPECT_EQ(ibv_create_rwq_ind_table(a->context, &table), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(Limits, UnknownInputsOfExtendedQueriesAreEinval) {
    connect_as("spec");
    ibv_device_attr_ex extended{};
    ibv_query_device_ex_input input{};
    input.comp_mask = 0x40;
    EXPECT_EQ(ibv_query_device_ex(a->context, &input, &extended), EINVAL);
    ibv_gid_entry entry{};
    EXPECT_EQ(ibv_query_gid_ex(a->context, 1, 0, &entry, 1), EINVAL);
    EXPECT_EQ(ibv_query_gid_ex(a->context, 2, 0, &entry, 0), EINVAL);
    EXPECT_EQ(ibv_query_gid_ex(a->context, 1, 5000, &entry, 0), EINVAL);
    EXPECT_EQ(ibv_query_gid_ex(a->context, 1, 50, &entry, 0), ENODATA);
    EXPECT_EQ(ibv_query_gid_table(a->context, &entry, 0, 0), -EINVAL);
    EXPECT_EQ(ibv_query_gid_table(a->context, &entry, 1, 1), -EINVAL);
    EXPECT_EQ(ibv_query_gid_table(a->context, &entry, 1, 0), 1);
}

// rdma-core looks for a file of sysfs, whatever the device.
TEST_F(Limits, APartitionKeyBeyondTheTableIsEnoent) {
    connect_as("spec");
    __be16 pkey = 0;
    errno = 0;
    EXPECT_EQ(ibv_query_pkey(a->context, 1, device.max_pkeys, &pkey), -1);
    EXPECT_EQ(errno, ENOENT);
    errno = 0;
    EXPECT_EQ(ibv_query_pkey(a->context, 2, 0, &pkey), -1);
    EXPECT_EQ(errno, ENOENT);
}

TEST_F(Limits, NeitherEceNorOrderIsPromised) {
    connect_as("spec");
    ibv_ece ece{1, 2, 3};
    EXPECT_EQ(ibv_query_ece(a->qp, &ece), EOPNOTSUPP);
    EXPECT_EQ(ece.vendor_id, 0U);
    ece.vendor_id = 1;
    EXPECT_EQ(ibv_set_ece(a->qp, &ece), EOPNOTSUPP);
    EXPECT_EQ(ibv_query_qp_data_in_order(a->qp, IBV_WR_RDMA_WRITE, 0), 0);
}

}  // namespace
}  // namespace verbs_test
