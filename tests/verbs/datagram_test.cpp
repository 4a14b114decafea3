// Unreliable datagrams: address handles, Q_Keys, the global header, what is dropped, multicast.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint32_t kGrh = 40;  // before the payload of each receive
constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::uint32_t kOwnQkey = 0x80000000;  // bit of a controlled Q_Key
constexpr std::uint32_t kGroupQpn = 0xFFFFFF;
constexpr std::uint16_t kGroupLid = 0xC001;

class Datagram : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        connect(ud());
    }
    static Connection ud() {
        Connection with;
        with.type = IBV_QPT_UD;
        return with;
    }
    Request to_b(std::uint64_t id, std::uint32_t length, std::uint32_t qkey = kQkey) {
        return Request(IBV_WR_SEND).id(id).from(a->range(0, length)).to(a->ah, b->qp->qp_num, qkey);
    }
    ibv_wc sent() {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
        return wc;
    }
};

TEST_F(Datagram, LandsBehindTheSpaceOfAGlobalHeader) {
    std::memcpy(a->at(), "datagram", 8);
    std::memset(b->at(), 0x5A, 64);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(to_b(2, 8).post(*a), 0);
    EXPECT_EQ(sent().wr_id, 2U);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_EQ(wc.byte_len, kGrh + 8);
    EXPECT_EQ(wc.src_qp, a->qp->qp_num);
    EXPECT_EQ(wc.wc_flags, 0U);
    EXPECT_EQ(std::memcmp(b->at(kGrh), "datagram", 8), 0);
    EXPECT_EQ(*b->at(0), 0x5A) << "no header came, its space is untouched";
    EXPECT_EQ(*b->at(kGrh + 8), 0x5A);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(wc.slid, port.lid);
}

TEST_F(Datagram, CarriesItsGlobalHeaderWhereOneWasAsked) {
    ibv_ah_attr attr{};
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(b->context, 1, &port), 0);
    attr.dlid = port.lid;
    attr.port_num = 1;
    attr.is_global = 1;
    attr.grh.flow_label = 0x12345;
    attr.grh.traffic_class = 0x42;
    attr.grh.hop_limit = 33;
    ASSERT_EQ(ibv_query_gid(b->context, 1, 0, &attr.grh.dgid), 0);
    ibv_ah* global = ibv_create_ah(a->pd, &attr);
    ASSERT_NE(global, nullptr);
    ASSERT_EQ(b->receive(1, {b->range(0, 256)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 12)).to(global, b->qp->qp_num, kQkey).post(*a),
              0);
    sent();
    ibv_wc wc = b->wait();
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH));
    const auto* grh = reinterpret_cast<const ibv_grh*>(b->at());
    EXPECT_EQ(ntohl(grh->version_tclass_flow), 0x64212345U);
    EXPECT_EQ(grh->next_hdr, 0x1B);
    EXPECT_EQ(grh->hop_limit, 33);
    // BTH 12, DETH 8, payload 12, ICRC 4.
    EXPECT_EQ(ntohs(grh->paylen), 36);
    EXPECT_EQ(std::memcmp(grh->dgid.raw, attr.grh.dgid.raw, 16), 0);
    // And a handle that leads back can be made of it.
    ibv_ah* back = ibv_create_ah_from_wc(b->pd, &wc, reinterpret_cast<ibv_grh*>(b->at()), 1);
    ASSERT_NE(back, nullptr);
    ASSERT_EQ(a->receive(3, {a->range(4096, 256)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND_WITH_IMM)
                  .from(b->range(512, 4))
                  .to(back, wc.src_qp, kQkey)
                  .immediate(77)
                  .post(*b),
              0);
    wc = a->wait();
    EXPECT_EQ(wc.wr_id, 3U);
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
    EXPECT_EQ(ntohl(wc.imm_data), 77U);
    EXPECT_EQ(ibv_destroy_ah(back), 0);
    EXPECT_EQ(ibv_destroy_ah(global), 0);
}

TEST_F(Datagram, ToAnotherQkeyIsDroppedSilently) {
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(to_b(2, 8, kQkey + 1).post(*a), 0);
    sent();
    expect_silence();
    ASSERT_EQ(to_b(3, 8).post(*a), 0);
    sent();
    EXPECT_EQ(b->wait().wr_id, 1U) << "the receive was kept";
}

TEST_F(Datagram, ToAnotherQkeyIsCounted) {
    ibv_port_attr before{};
    ibv_port_attr after{};
    ASSERT_EQ(ibv_query_port(b->context, 1, &before), 0);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(to_b(2, 8, kQkey + 1).post(*a), 0);
    sent();
    pass(1);
    ASSERT_EQ(ibv_query_port(b->context, 1, &after), 0);
    EXPECT_EQ(after.qkey_viol_cntr, before.qkey_viol_cntr + 1);
}

// There is no bind without a window, on any service.
TEST_F(Datagram, ABindOfNoWindowIsRefused) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(a->qp, &wr, &bad), EINVAL);
    EXPECT_EQ(bad, &wr);
}

TEST_F(Datagram, WithAControlledQkeySendsTheQueuePairsOwn) {
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(to_b(2, 8, kOwnQkey | 5).post(*a), 0);
    sent();
    EXPECT_EQ(b->wait().wr_id, 1U);
}

TEST_F(Datagram, ThatDoesNotFitIsDroppedAndItsReceiveKept) {
    ASSERT_EQ(b->receive(1, {b->range(0, kGrh + 7)}), 0);
    ASSERT_EQ(to_b(2, 8).post(*a), 0);
    sent();
    expect_silence();
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    ASSERT_EQ(to_b(3, 7).post(*a), 0);
    sent();
    EXPECT_EQ(b->wait().byte_len, kGrh + 7);
}

TEST_F(Datagram, WithoutAReceiveIsDropped) {
    ASSERT_EQ(to_b(2, 8).post(*a), 0);
    sent();
    pass(1);  // sent is not yet arrived
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    expect_silence();
}

// A send error stops the send queue alone; receives go on, and RTS is allowed again.
TEST_F(Datagram, AboveTheMtuStopsTheSendQueue) {
    ASSERT_EQ(a->receive(1, {a->range(8192, 64)}), 0);
    ASSERT_EQ(to_b(2, 4097).post(*a), 0);
    ASSERT_EQ(to_b(3, 8).post(*a), 0);
    ibv_wc wc = a->wait();
    EXPECT_EQ(wc.wr_id, 2U);
    EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
    wc = a->wait();
    EXPECT_EQ(wc.wr_id, 3U);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_SQE);
    ASSERT_EQ(to_b(4, 8).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_WR_FLUSH_ERR) << "posted in SQE";
    ASSERT_EQ(Request(IBV_WR_SEND).from(b->range(0, 8)).to(b->ah, a->qp->qp_num, kQkey).post(*b),
              0);
    EXPECT_EQ(a->wait().wr_id, 1U) << "receives go on";
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(a->to_state(IBV_QPS_RTS), 0);
    ASSERT_EQ(b->receive(5, {b->range(0, 64)}), 0);
    ASSERT_EQ(to_b(6, 8).post(*a), 0);
    sent();
    EXPECT_EQ(b->wait().wr_id, 5U);
}

TEST_F(Datagram, ByAnAddressOfAnotherDomainIsRefused) {
    ibv_pd* other = ibv_alloc_pd(a->context);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(b->context, 1, &port), 0);
    ibv_ah_attr attr{};
    attr.dlid = port.lid;
    attr.port_num = 1;
    ibv_ah* foreign = ibv_create_ah(other, &attr);
    ASSERT_NE(foreign, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 8)).to(foreign, b->qp->qp_num, kQkey).post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_SQE);
    EXPECT_EQ(ibv_destroy_ah(foreign), 0);
    EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Datagram, IntoMemoryWithoutTheRightTakesTheReceiverDown) {
    ibv_mr* read_only = ibv_reg_mr(b->pd, b->at(), 4096, 0);
    ASSERT_NE(read_only, nullptr);
    ASSERT_EQ(b->receive(1, {{b->address(), 64, read_only->lkey}}), 0);
    ASSERT_EQ(to_b(2, 8).post(*a), 0);
    sent();
    EXPECT_EQ(b->wait().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
    EXPECT_EQ(ibv_dereg_mr(read_only), 0);
}

TEST_F(Datagram, OperationsOfConnectionsAreRefused) {
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE).from(a->range(0, 8)).to(a->ah, 0, 0).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_SQE);
}

TEST_F(Datagram, BadAddressesAreRefused) {
    ibv_ah_attr attr{};
    attr.port_num = 2;
    EXPECT_EQ(ibv_create_ah(a->pd, &attr), nullptr);
    EXPECT_EQ(errno, EINVAL);
    attr.port_num = 1;
    attr.sl = 16;
    EXPECT_EQ(ibv_create_ah(a->pd, &attr), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Datagram, OnASharedQueueTooSmallAReceiveIsAborted) {
    a.reset();
    b.reset();
    Connection with = ud();
    with.shared_receives = 8;
    connect(with);
    ASSERT_EQ(b->receive(1, {b->range(0, kGrh + 4)}), 0);
    ASSERT_EQ(to_b(2, 8).post(*a), 0);
    sent();
    EXPECT_EQ(b->wait().status, IBV_WC_REM_ABORT_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

class Multicast : public Datagram {
  protected:
    void SetUp() override {
        Datagram::SetUp();
        group.raw[0] = 0xFF;
        group.raw[1] = 0x12;
        group.raw[15] = 0x33;
        ibv_ah_attr attr{};
        attr.dlid = kGroupLid;
        attr.port_num = 1;
        attr.is_global = 1;
        attr.grh.dgid = group;
        attr.grh.hop_limit = 1;
        ah = ibv_create_ah(a->pd, &attr);
        ASSERT_NE(ah, nullptr);
    }
    void TearDown() override {
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
        Datagram::TearDown();
    }
    ibv_gid group{};
    ibv_ah* ah = nullptr;
};

TEST_F(Multicast, ReachesTheSendersOwnMembers) {
    ASSERT_EQ(ibv_attach_mcast(a->qp, &group, kGroupLid), 0);
    EXPECT_EQ(ibv_attach_mcast(a->qp, &group, kGroupLid), 0) << "attaching again changes nothing";
    EXPECT_EQ(ibv_destroy_qp(a->qp), EBUSY);
    expect_reason("is attached to 1 multicast group: ibv_detach_mcast() it first");
    ASSERT_EQ(a->receive(1, {a->range(8192, 64)}), 0);
    std::memcpy(a->at(), "group", 5);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 5)).to(ah, kGroupQpn, kQkey).post(*a), 0);
    bool received = false;
    for (int i = 0; i < 2; ++i) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        received = received || wc.wr_id == 1;
    }
    EXPECT_TRUE(received);
    EXPECT_EQ(std::memcmp(a->at(8192 + kGrh), "group", 5), 0);
    EXPECT_EQ(ibv_detach_mcast(a->qp, &group, kGroupLid), 0);
    EXPECT_EQ(ibv_detach_mcast(a->qp, &group, kGroupLid), EINVAL);
}

// The other members of the device hear it all the same.
TEST_F(Multicast, ASenderMayWantNoCopyOfItsOwn) {
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_UD;
    init.send_cq = init.recv_cq = a->cq;
    init.cap = ud().cap;
    init.pd = a->pd;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    ibv_qp* blocking = ibv_create_qp_ex(a->context, &init);
    ASSERT_NE(blocking, nullptr);
    ibv_qp* plain = std::exchange(a->qp, blocking);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(ibv_destroy_ah(a->ah), 0);
    EXPECT_EQ(ibv_destroy_ah(b->ah), 0);
    bring_up(ud());
    ASSERT_EQ(ibv_attach_mcast(blocking, &group, kGroupLid), 0);
    ASSERT_EQ(ibv_attach_mcast(plain, &group, kGroupLid), 0);
    ASSERT_EQ(a->receive(1, {a->range(8192, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 5)).to(ah, kGroupQpn, kQkey).post(*a), 0);
    EXPECT_EQ(a->wait().wr_id, 2U);
    pass(1);
    EXPECT_TRUE(a->drain().empty());
    // Datagrams of another queue pair of the device do come.
    a->qp = plain;
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, 5)).to(ah, kGroupQpn, kQkey).post(*a), 0);
    std::vector<std::uint64_t> ids = {a->wait().wr_id, a->wait().wr_id};
    std::ranges::sort(ids);
    EXPECT_EQ(ids, (std::vector<std::uint64_t>{1, 3}));
    EXPECT_EQ(ibv_detach_mcast(blocking, &group, kGroupLid), 0);
    EXPECT_EQ(ibv_detach_mcast(plain, &group, kGroupLid), 0);
    EXPECT_EQ(ibv_destroy_qp(blocking), 0);
}

TEST_F(Multicast, OtherGroupsHearNothing) {
    ibv_gid other = group;
    other.raw[15] = 0x34;
    ASSERT_EQ(ibv_attach_mcast(a->qp, &other, kGroupLid), 0);
    ASSERT_EQ(a->receive(1, {a->range(8192, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 5)).to(ah, kGroupQpn, kQkey).post(*a), 0);
    EXPECT_EQ(a->wait().wr_id, 2U);
    expect_silence();
    EXPECT_EQ(ibv_detach_mcast(a->qp, &other, kGroupLid), 0);
}

TEST_F(Multicast, OnlyGroupsAndDatagramsMayBeAttached) {
    ibv_gid unicast{};
    ASSERT_EQ(ibv_query_gid(a->context, 1, 0, &unicast), 0);
    EXPECT_EQ(ibv_attach_mcast(a->qp, &unicast, kGroupLid), EINVAL);
    EXPECT_EQ(ibv_attach_mcast(a->qp, &group, 1), EINVAL) << "no multicast LID";
}

}  // namespace
}  // namespace verbs_test
