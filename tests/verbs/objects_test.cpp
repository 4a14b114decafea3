// Devices and what is made on them: queries, limits, what may be destroyed when.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <sys/mman.h>
#include <unistd.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Objects : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        connect();
    }
    ibv_qp* create_qp(ibv_qp_cap cap, ibv_cq* cq) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq;
        init.cap = cap;
        init.qp_type = IBV_QPT_RC;
        errno = 0;
        return ibv_create_qp(a->pd, &init);
    }
    int registration_error(void* address, std::size_t length, int access) {
        errno = 0;
        ibv_mr* mr = ibv_reg_mr(a->pd, address, length, access);
        if (mr == nullptr) {
            return errno;
        }
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        return 0;
    }
};

TEST_F(Objects, EveryHostOfTheTopologyHasADevice) {
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    ASSERT_EQ(count, 2);
    EXPECT_STREQ(ibv_get_device_name(devices[0]), "simverbs0");
    EXPECT_STREQ(ibv_get_device_name(devices[1]), "simverbs1");
    EXPECT_EQ(devices[2], nullptr);
    EXPECT_EQ(devices[0]->node_type, IBV_NODE_CA);
    EXPECT_EQ(devices[0]->transport_type, IBV_TRANSPORT_IB);
    EXPECT_NE(ibv_get_device_guid(devices[0]), ibv_get_device_guid(devices[1]));
    ibv_free_device_list(devices);
}

TEST_F(Objects, DeviceSaysWhatItCan) {
    ibv_device_attr attr{};
    ASSERT_EQ(ibv_query_device(a->context, &attr), 0);
    EXPECT_EQ(attr.phys_port_cnt, 1);
    EXPECT_EQ(attr.node_guid, ibv_get_device_guid(a->context->device));
    EXPECT_GE(attr.max_qp_rd_atom, 16);
    EXPECT_GE(attr.max_sge, 4);
    EXPECT_GE(attr.max_qp_wr, 2000);
    EXPECT_NE(attr.atomic_cap, IBV_ATOMIC_NONE);
    EXPECT_GT(attr.max_srq, 0);
    EXPECT_GE(attr.max_srq_wr, 2000);
    EXPECT_GE(attr.max_srq_sge, 4);
    EXPECT_GT(attr.max_ah, 0);
    EXPECT_GT(attr.max_mcast_grp, 0);
    EXPECT_GT(attr.max_mcast_qp_attach, 0);
    EXPECT_GE(attr.max_total_mcast_qp_attach, attr.max_mcast_grp);
    ibv_device_attr_ex extended{};
    ASSERT_EQ(ibv_query_device_ex(a->context, nullptr, &extended), 0);
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the gaps are zero in both
    EXPECT_EQ(std::memcmp(&extended.orig_attr, &attr, sizeof attr), 0);
}

TEST_F(Objects, PortIsActiveWithALid) {
    ibv_port_attr port{};
    ibv_port_attr other{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    ASSERT_EQ(ibv_query_port(b->context, 1, &other), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
    EXPECT_EQ(port.max_mtu, IBV_MTU_4096);
    EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
    EXPECT_NE(port.lid, 0);
    EXPECT_NE(port.lid, other.lid);
    EXPECT_EQ(port.sm_lid, other.sm_lid);
    EXPECT_GE(port.max_msg_sz, 1U << 20);
    EXPECT_EQ(ibv_query_port(a->context, 0, &port), EINVAL);
    EXPECT_EQ(ibv_query_port(a->context, 2, &port), EINVAL);
}

TEST_F(Objects, GidIsPrefixAndGuid) {
    ibv_gid gid{};
    ASSERT_EQ(ibv_query_gid(a->context, 1, 0, &gid), 0);
    EXPECT_EQ(gid.global.subnet_prefix, htobe64(0xFE80000000000000));
    EXPECT_NE(gid.global.interface_id, 0U);
    EXPECT_EQ(ibv_query_gid(a->context, 1, -1, &gid), -1);
    EXPECT_EQ(ibv_query_gid(a->context, 2, 0, &gid), -1);
    ibv_gid_entry entry{};
    ASSERT_EQ(ibv_query_gid_ex(a->context, 1, 0, &entry, 0), 0);
    EXPECT_EQ(std::memcmp(&entry.gid, &gid, 0), 0);
    EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_IB));
    ibv_gid_entry table[4];
    EXPECT_EQ(ibv_query_gid_table(a->context, table, 4, 0), 1);
}

TEST_F(Objects, DefaultPartitionIsFull) {
    __be16 pkey = 0;
    ASSERT_EQ(ibv_query_pkey(a->context, 1, 0, &pkey), 0);
    EXPECT_EQ(pkey, htons(0xFFFF));
    EXPECT_EQ(ibv_get_pkey_index(a->context, 1, htons(0xFFFF)), 0);
    EXPECT_EQ(ibv_get_pkey_index(a->context, 1, htons(0x1234)), -1);
    EXPECT_EQ(ibv_query_pkey(a->context, 1, 100'000, &pkey), -1);
}

TEST_F(Objects, APathMayNameTheGidToo) {
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    for (End* end : {a.get(), b.get()}) {
        End& peer = end == a.get() ? *b : *a;
        ibv_qp_attr attr = init_attr({});
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, kInitMask), 0);
        attr = rtr_attr(peer, {});
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.hop_limit = 1;
        ASSERT_EQ(ibv_query_gid(peer.context, 1, 0, &attr.ah_attr.grh.dgid), 0);
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, kRtrMask), 0);
        attr = rts_attr({});
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, kRtsMask), 0);
    }
    expect_works();
}

TEST_F(Objects, ParentsInUseAreBusy) {
    EXPECT_EQ(ibv_dealloc_pd(a->pd), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(a->cq), EBUSY);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_EQ(ibv_dealloc_pd(a->pd), EBUSY);  // the region is left
    ASSERT_EQ(ibv_dereg_mr(a->mr), 0);
    a->mr = nullptr;
    EXPECT_EQ(ibv_dealloc_pd(a->pd), 0);
    a->pd = nullptr;
    EXPECT_EQ(ibv_destroy_cq(a->cq), 0);
    a->cq = nullptr;
}

TEST_F(Objects, WorkOutstandingKeepsNobodyBusy) {
    ASSERT_EQ(a->receive(1, {a->range(0, 8)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 8)).post(*a), 0);
    EXPECT_EQ(ibv_dereg_mr(a->mr), 0);
    a->mr = nullptr;
    EXPECT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
}

TEST_F(Objects, ClosingADeviceTakesWhatIsLeft) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    ibv_context* context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    // The handle stays with the program, as with rdma-core; what it named in the device does not.
    static ibv_pd* left_behind = nullptr;
    left_behind = ibv_alloc_pd(context);
    ASSERT_NE(left_behind, nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
}

TEST_F(Objects, ClosingADeviceTwiceIsRefused) {
    ibv_context* const context = ibv_open_device(a->context->device);
    EXPECT_EQ(ibv_close_device(context), 0);
    errno = 0;
    EXPECT_EQ(ibv_close_device(context), EINVAL);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_NE(std::strstr(simverbs_last_error(), "is no open device: it was closed before"),
              nullptr)
        << simverbs_last_error();
    EXPECT_EQ(ibv_close_device(nullptr), EINVAL);
    expect_works();
}

TEST_F(Objects, ClosingADeviceThatSimverbsHasClosedIsRefused) {
    a.reset();
    b.reset();
    ibv_device** const devices = ibv_get_device_list(nullptr);
    std::vector<ibv_context*> contexts{ibv_open_device(devices[0]), ibv_open_device(devices[1])};
    ibv_free_device_list(devices);
    EXPECT_EQ(simverbs_close_devices(), 2U);
    for (ibv_context* const context : contexts) {
        EXPECT_EQ(ibv_close_device(context), EINVAL);
    }
    EXPECT_EQ(simverbs_restart(), 0) << simverbs_last_error();
}

TEST_F(Objects, QueuePairGrantsAtLeastWhatWasAsked) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = a->cq;
    init.cap = {.max_send_wr = 5,
                .max_recv_wr = 7,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = 60};
    init.qp_type = IBV_QPT_RC;
    ibv_qp* qp = ibv_create_qp(a->pd, &init);
    ASSERT_NE(qp, nullptr);
    EXPECT_GE(init.cap.max_send_wr, 5U);
    EXPECT_GE(init.cap.max_recv_wr, 7U);
    EXPECT_GE(init.cap.max_inline_data, 60U);
    EXPECT_NE(qp->qp_num, a->qp->qp_num);
    EXPECT_EQ(qp->state, IBV_QPS_RESET);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(Objects, QueuePairBeyondTheLimitsIsEinval) {
    constexpr std::uint32_t kMany = 1U << 30;
    EXPECT_EQ(create_qp({kMany, 1, 1, 1, 0}, a->cq), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(create_qp({1, kMany, 1, 1, 0}, a->cq), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(create_qp({1, 1, kMany, 1, 0}, a->cq), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(create_qp({1, 1, 1, 1, kMany}, a->cq), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(create_qp({1, 1, 1, 1, 0}, nullptr), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Objects, RegionsNeedRightsThatGoTogetherAndMemoryThatIsThere) {
    const auto page = static_cast<std::size_t>(4096);
    EXPECT_EQ(registration_error(a->at(0), page, 0), 0);
    EXPECT_EQ(registration_error(a->at(0), 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
    EXPECT_EQ(registration_error(a->at(0), page, IBV_ACCESS_REMOTE_WRITE), EINVAL);
    EXPECT_EQ(registration_error(a->at(0), page, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
    EXPECT_EQ(registration_error(a->at(0), page, IBV_ACCESS_REMOTE_READ), 0);
    EXPECT_EQ(registration_error(a->at(0), page, 1 << 19), EINVAL);
    EXPECT_EQ(registration_error(a->at(0), page, kAllAccess | IBV_ACCESS_RELAXED_ORDERING), 0);
    void* hole = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(hole, page);
    EXPECT_EQ(registration_error(hole, page, IBV_ACCESS_LOCAL_WRITE), EFAULT);
    void* read_only = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(registration_error(read_only, page, IBV_ACCESS_LOCAL_WRITE), EFAULT);
    EXPECT_EQ(registration_error(read_only, page, IBV_ACCESS_REMOTE_READ), 0);
    munmap(read_only, page);
}

// Ranges that pinning would refuse, in short ranges and in long ones: holes, rights, the end of a
// file.
TEST_F(Objects, EveryPageOfARegionIsThere) {
    constexpr std::size_t kPage = 4096;
    for (const std::size_t pages : {4, 64}) {
        SCOPED_TRACE(pages);
        const std::size_t bytes = pages * kPage;
        auto* base = static_cast<char*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(base, MAP_FAILED);
        EXPECT_EQ(registration_error(base + 1, bytes - 2, IBV_ACCESS_LOCAL_WRITE), 0);
        ASSERT_EQ(mprotect(base + kPage, kPage, PROT_READ), 0);  // three mappings now
        EXPECT_EQ(registration_error(base, bytes, IBV_ACCESS_LOCAL_WRITE), EFAULT);
        EXPECT_EQ(registration_error(base, bytes, 0), 0);
        EXPECT_EQ(registration_error(base, kPage, IBV_ACCESS_LOCAL_WRITE), 0);
        ASSERT_EQ(mprotect(base + kPage, kPage, PROT_NONE), 0);
        EXPECT_EQ(registration_error(base, bytes, 0), EFAULT);
        ASSERT_EQ(munmap(base + kPage, kPage), 0);
        EXPECT_EQ(registration_error(base, bytes, 0), EFAULT);
        EXPECT_EQ(registration_error(base + 2 * kPage, bytes - 2 * kPage, 0), 0);
        EXPECT_EQ(registration_error(base + kPage - 1, 2, 0), EFAULT);
        munmap(base, bytes);
    }
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(ftruncate(fileno(file), kPage), 0);
    auto* mapped = static_cast<char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0));
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_EQ(registration_error(mapped, kPage, IBV_ACCESS_LOCAL_WRITE), 0);
    EXPECT_EQ(registration_error(mapped, 2 * kPage, IBV_ACCESS_LOCAL_WRITE), EFAULT);
    munmap(mapped, 2 * kPage);
    EXPECT_EQ(std::fclose(file), 0);
}

TEST_F(Objects, ARegionMayBeNamedFromZeroOn) {
    ibv_mr* mr = ibv_reg_mr_iova(b->pd, b->at(8192), 4096, 0, kAllAccess);
    ASSERT_NE(mr, nullptr);
    a->word(0) = 77;
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE).from(a->range(0, 8)).to(16, mr->rkey).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(b->word(8192 + 16), 77U);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// ---- memory that went away
// -----------------------------------------------------------------------

class Unmapped : public Objects {
  protected:
    static constexpr std::size_t kBytes = 8192;
    // A region whose pages are unmapped after its registration.
    ibv_mr* vanish(End& end) {
        void* pages =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ibv_mr* mr = ibv_reg_mr(end.pd, pages, kBytes, kAllAccess);
        take_away(pages, kBytes);
        return mr;
    }
    static ibv_sge all_of(const ibv_mr* mr) {
        return {reinterpret_cast<std::uint64_t>(mr->addr), kBytes, mr->lkey};
    }
    static std::uint64_t address_of(const ibv_mr* mr) {
        return reinterpret_cast<std::uint64_t>(mr->addr);
    }
};

TEST_F(Unmapped, SourceOfASendIsLocProt) {
    ibv_mr* mr = vanish(*a);
    ASSERT_EQ(b->receive(1, {b->range(0, kBytes)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from(all_of(mr)).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Unmapped, TargetOfAWriteIsRemAccess) {
    ibv_mr* mr = vanish(*b);
    ASSERT_EQ(
        Request(IBV_WR_RDMA_WRITE).from(a->range(0, kBytes)).to(address_of(mr), mr->rkey).post(*a),
        0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Unmapped, SourceOfAReadIsRemAccess) {
    ibv_mr* mr = vanish(*b);
    ASSERT_EQ(
        Request(IBV_WR_RDMA_READ).into(a->range(0, kBytes)).to(address_of(mr), mr->rkey).post(*a),
        0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Unmapped, LandingOfAReadIsLocProt) {
    ibv_mr* mr = vanish(*a);
    ASSERT_EQ(Request(IBV_WR_RDMA_READ).into(all_of(mr)).to(b->address(0), b->mr->rkey).post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Unmapped, ReceiveIsLocProtThereAndRemOpHere) {
    ibv_mr* mr = vanish(*b);
    ASSERT_EQ(b->receive(1, {all_of(mr)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 64)).post(*a), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_OP_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Unmapped, TargetOfAnAtomicIsRemAccess) {
    ibv_mr* mr = vanish(*b);
    ASSERT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .into(a->range(0, 8))
                  .fetch_and_add(address_of(mr), mr->rkey, 1)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

}  // namespace
}  // namespace verbs_test
