// Differences of personality `rxe` from `spec`, where a program can see it. The whole of its
// answers is compared in tests/conformance.
#include <cerrno>

#include "newer_verbs.h"
#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class SoftRoce : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
        ASSERT_EQ(simverbs_set_topology("eth-pair"), 0) << simverbs_last_error();
        ASSERT_EQ(simverbs_set_personality("rxe"), 0) << simverbs_last_error();
    }
};

TEST_F(SoftRoce, APortHasRoceV2AloneAndJumboFrames) {
    connect({});
    ibv_gid_entry entries[4];
    ASSERT_EQ(ibv_query_gid_table(a->context, entries, 4, 0), 2);
    EXPECT_EQ(entries[0].gid_type, static_cast<unsigned>(IBV_GID_TYPE_ROCE_V2));
    EXPECT_EQ(entries[1].gid_type, static_cast<unsigned>(IBV_GID_TYPE_ROCE_V2));
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
    Connection wide = Connection{};
    wide.mtu = IBV_MTU_4096;
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up(wide);
    expect_works();
}

TEST_F(SoftRoce, ADatagramsCompletionDoesNotSayWhatPacketItWas) {
    Connection with;
    with.type = IBV_QPT_UD;
    with.gid_index = 1;
    connect(with);
    ibv_ah_attr attr = rtr_attr(*b, with).ah_attr;
    attr.sl = 3;
    ibv_ah* ah = ibv_create_ah(a->pd, &attr);
    ASSERT_NE(ah, nullptr);
    ASSERT_EQ(b->receive(1, {b->range(0, 256)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 8)).to(ah, b->qp->qp_num, with.qkey).post(*a),
              0);
    EXPECT_EQ(b->wait().sl, 0);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST_F(SoftRoce, CompletionsOutliveAResetAndGiveBackNoSlotOfTheNextLife) {
    Connection with = Connection{};
    with.cap.max_recv_wr = 1;
    connect(with);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 8)).post(*a), 0);
    pass(1);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(a->wait().wr_id, 2U);
    EXPECT_EQ(b->wait().wr_id, 1U);
    bring_up(with);
    ASSERT_EQ(b->receive(3, {b->range(0, 64)}), 0);
    EXPECT_EQ(b->receive(4, {b->range(0, 64)}), ENOMEM) << "one slot, and it is taken";
    ASSERT_EQ(Request(IBV_WR_SEND).id(5).from(a->range(0, 8)).post(*a), 0);
    EXPECT_EQ(a->wait().wr_id, 5U);
    EXPECT_EQ(b->wait().wr_id, 3U);
}

TEST_F(SoftRoce, WhatIsPostedInSqdStartsWithTheNextDoorbellInRts) {
    connect({});
    ASSERT_EQ(a->to_state(IBV_QPS_SQD), 0);
    pass(1);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, 8)).post(*a), 0);
    ASSERT_EQ(a->to_state(IBV_QPS_RTS), 0);
    pass(1);
    EXPECT_TRUE(a->drain().empty());
    ASSERT_EQ(Request(IBV_WR_SEND).id(4).from(a->range(0, 8)).post(*a), 0);
    EXPECT_EQ(a->wait().wr_id, 3U);
    EXPECT_EQ(a->wait().wr_id, 4U);
}

TEST_F(SoftRoce, APathThatWasNeverSetReadsAsAGlobalOne) {
    Connection with = Connection{};
    connect(with);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    const ibv_qp_attr attr = a->query();
    EXPECT_EQ(attr.ah_attr.is_global, 1);
    EXPECT_EQ(attr.ah_attr.port_num, 0);
    EXPECT_EQ(attr.path_mtu, IBV_MTU_256);
    EXPECT_EQ(attr.port_num, 0);
}

TEST_F(SoftRoce, ASharedQueueTakesItsLimitAtCreation) {
    connect({});
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 8};
    ibv_srq* srq = ibv_create_srq(a->pd, &init);
    ASSERT_NE(srq, nullptr);
    ibv_srq_attr attr{};
    ASSERT_EQ(ibv_query_srq(srq, &attr), 0);
    EXPECT_EQ(attr.srq_limit, 8U);
    EXPECT_EQ(attr.max_wr, 31U);
    attr.srq_limit = 31;
    EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0) << "what the ring holds";
    attr.srq_limit = 32;
    EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    attr.max_wr = 30;
    EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL) << "below its limit";
    EXPECT_EQ(ibv_modify_srq(srq, &attr, 0), 0);
    EXPECT_EQ(ibv_modify_srq(srq, &attr, 0x40), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(SoftRoce, LacksXrcThreadDomainsFlowRulesAndReregistering) {
    connect({});
    ibv_xrcd_init_attr domain{};
    domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    domain.fd = -1;
    EXPECT_EQ(ibv_open_xrcd(a->context, &domain), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_td_init_attr threads{};
    EXPECT_EQ(ibv_alloc_td(a->context, &threads), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_parent_domain_init_attr parent{};
    parent.pd = a->pd;
    EXPECT_EQ(ibv_alloc_parent_domain(a->context, &parent), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_flow_attr flow{};
    EXPECT_EQ(ibv_create_flow(a->qp, &flow), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_qp_attr attr{};
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_CAP), EINVAL) << "no queue is ever resized";
}

TEST_F(SoftRoce, InvalidatesOnReliableConnectionsAlone) {
    Connection with = Connection{};
    with.type = IBV_QPT_UC;
    connect(with);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND_WITH_INV).id(2).from(a->range(0, 8)).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    expect_silence();
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

TEST_F(SoftRoce, HasNoPortSpeed) {
    connect({});
    std::uint64_t speed = 0;
    EXPECT_EQ(newer_query_port_speed(a->context, 1, &speed), EOPNOTSUPP);
    EXPECT_EQ(speed, 0U);
}

TEST_F(SoftRoce, AMigrationStateMeansNothing) {
    connect({});
    ibv_qp_attr attr{};
    attr.path_mig_state = IBV_MIG_ARMED;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_PATH_MIG_STATE), 0);
    EXPECT_EQ(a->query().path_mig_state, IBV_MIG_MIGRATED);
}

}  // namespace
}  // namespace verbs_test
