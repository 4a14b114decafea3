// The states of a queue pair as a program sees them: what may be posted where, what is flushed,
// what a reset forgets, what modify_qp refuses. The full table is checked in tests/model.
#include <cerrno>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class RcState : public TwoHosts {
  protected:
    int send(std::uint64_t id) {
        return Request(IBV_WR_SEND).id(id).from(a->range(0, 64)).post(*a);
    }
    int receive(std::uint64_t id) { return a->receive(id, {a->range(0, 64)}); }
};

TEST_F(RcState, NothingMayBePostedInReset) {
    connect();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(send(1), EINVAL);
    EXPECT_EQ(receive(2), EINVAL);
}

TEST_F(RcState, ReceivesMayBePostedFromInitOnButSendsNotBeforeRts) {
    connect();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr({});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask), 0);
    EXPECT_EQ(send(1), EINVAL);
    EXPECT_EQ(receive(2), 0);
    attr = rtr_attr(*b, {});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), 0);
    EXPECT_EQ(send(1), EINVAL);
    EXPECT_EQ(receive(3), 0);
    attr = rts_attr({});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kRtsMask), 0);
    expect_silence();  // what was refused was not kept
}

TEST_F(RcState, WhatIsPostedInErrIsFlushedAtOnce) {
    connect();
    ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
    ASSERT_EQ(send(1), 0);
    ibv_wc wc = a->wait();
    EXPECT_EQ(wc.wr_id, 1U);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    ASSERT_EQ(receive(2), 0);
    wc = a->wait();
    EXPECT_EQ(wc.wr_id, 2U);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RcState, ErrByModifyFlushesInOrderOfPosting) {
    connect({.rnr_retries = 7});
    for (std::uint64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(receive(10 + i), 0);
        ASSERT_EQ(send(i), 0);
    }
    pass(1);  // they wait for receives that the peer does not post
    ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
    std::vector<std::uint64_t> sends;
    std::vector<std::uint64_t> receives;
    for (int i = 0; i < 8; ++i) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
        (wc.wr_id < 10 ? sends : receives).push_back(wc.wr_id);
    }
    EXPECT_EQ(sends, (std::vector<std::uint64_t>{0, 1, 2, 3}));
    EXPECT_EQ(receives, (std::vector<std::uint64_t>{10, 11, 12, 13}));
    expect_silence();
}

TEST_F(RcState, ResetForgetsRequestsAndTheirCompletions) {
    connect();
    ASSERT_EQ(receive(1), 0);
    ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
    ASSERT_EQ(send(2), 0);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    EXPECT_TRUE(a->drain().empty());
    EXPECT_EQ(a->query().dest_qp_num, 0U);
}

TEST_F(RcState, AnyStateMayGoToResetAndBackToWork) {
    connect();
    const auto again = [this] {
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
        bring_up({});
        expect_works();
    };
    expect_works();
    again();
    ASSERT_EQ(a->to_state(IBV_QPS_SQD), 0);
    again();
    ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
    again();
}

TEST_F(RcState, ResetMayGoStraightToErr) {
    connect();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(a->to_state(IBV_QPS_ERR), 0);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
}

TEST_F(RcState, WhatIsPostedInSqdIsSentOnReturnToRts) {
    connect();
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(a->to_state(IBV_QPS_SQD), 0);
    ASSERT_EQ(send(2), 0);
    pass(1000);
    EXPECT_TRUE(a->drain().empty());
    ASSERT_EQ(a->to_state(IBV_QPS_RTS), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(RcState, DrainedIsSaidWhenItWasAskedFor) {
    connect();
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    pass(1);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_SQ_DRAINED});
    ASSERT_EQ(a->to_state(IBV_QPS_RTS), 0);
    ASSERT_EQ(a->to_state(IBV_QPS_SQD), 0);
    pass(1);
    EXPECT_TRUE(a->events().empty());
}

TEST_F(RcState, RtsIsRefusedWhileDraining) {
    connect({.rnr_retries = 7});
    ASSERT_EQ(send(1), 0);
    pass(1);  // waits for a receive
    ASSERT_EQ(a->to_state(IBV_QPS_SQD), 0);
    ibv_qp_attr attr = a->query();
    EXPECT_EQ(attr.sq_draining, 1);
    EXPECT_EQ(a->to_state(IBV_QPS_RTS), EINVAL);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->query().sq_draining, 0);
    EXPECT_EQ(a->to_state(IBV_QPS_RTS), 0);
}

TEST_F(RcState, QuerySaysWhatModifySet) {
    connect({.mtu = IBV_MTU_2048,
             .timeout = 9,
             .retries = 5,
             .rnr_retries = 4,
             .min_rnr_timer = 17,
             .reads = 3});
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
    EXPECT_EQ(attr.cur_qp_state, IBV_QPS_RTS);
    EXPECT_EQ(attr.path_mtu, IBV_MTU_2048);
    EXPECT_EQ(attr.timeout, 9);
    EXPECT_EQ(attr.retry_cnt, 5);
    EXPECT_EQ(attr.rnr_retry, 4);
    EXPECT_EQ(attr.min_rnr_timer, 17);
    EXPECT_EQ(attr.max_rd_atomic, 3);
    EXPECT_EQ(attr.max_dest_rd_atomic, 3);
    EXPECT_EQ(attr.dest_qp_num, b->qp->qp_num);
    EXPECT_EQ(attr.sq_psn, kPsn);
    EXPECT_EQ(attr.rq_psn, kPsn);
    EXPECT_EQ(attr.port_num, 1);
    EXPECT_EQ(attr.qp_access_flags, kAllAccess);
    EXPECT_EQ(attr.cap.max_inline_data, 256U);
    EXPECT_EQ(init.cap.max_send_wr, 16U);
    EXPECT_EQ(init.send_cq, a->cq);
    EXPECT_EQ(init.qp_type, IBV_QPT_RC);
}

// rdma-core refuses masks from IBV_QP_RATE_LIMIT up (ibv_cmd_query_qp); programs ask for all the
// bits below it, which include some that name nothing.
TEST_F(RcState, QueryTakesEveryMaskBelowTheRateLimit) {
    connect();
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    for (int bit = 0; bit < 31; ++bit) {
        const int mask = 1 << bit;
        EXPECT_EQ(ibv_query_qp(a->qp, &attr, mask, &init),
                  mask < IBV_QP_RATE_LIMIT ? 0 : EOPNOTSUPP)
            << "bit " << bit;
    }
    attr.timeout = 0;
    EXPECT_EQ(ibv_query_qp(a->qp, &attr, 0x1FFFFFF, &init), 0);
    EXPECT_EQ(attr.timeout, Connection{}.timeout);
}

// UCX asks for other attributes after an error, and compares ibv_qp.state with RTS.
TEST_F(RcState, QueryWritesTheHandlesStateOnlyWhereItIsAskedFor) {
    connect();
    ASSERT_EQ(a->qp->state, IBV_QPS_RTS);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(Request(IBV_WR_RDMA_WRITE).from(a->range(0, 8)).to(0, 1).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR);
    ASSERT_EQ(ibv_query_qp(a->qp, &attr, IBV_QP_AV | IBV_QP_DEST_QPN, &init), 0);
    EXPECT_EQ(a->qp->state, IBV_QPS_RTS);
    ASSERT_EQ(ibv_query_qp(a->qp, &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(a->qp->state, IBV_QPS_ERR);
}

struct BadValue {
    const char* name;
    int step;  // 0: to INIT, 1: to RTR, 2: to RTS
    void (*spoil)(ibv_qp_attr& attr);
};
std::ostream& operator<<(std::ostream& out, const BadValue& row) {
    return out << row.name;
}

class BadAttribute : public RcState, public testing::WithParamInterface<BadValue> {};

TEST_P(BadAttribute, IsEinvalAndLeavesTheState) {
    a = std::make_unique<End>(0, Connection{});
    b = std::make_unique<End>(1, Connection{});
    const int masks[] = {kInitMask, kRtrMask, kRtsMask};
    const ibv_qp_state before[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR};
    for (int step = 0; step <= GetParam().step; ++step) {
        ibv_qp_attr attr = step == 0 ? init_attr({}) : step == 1 ? rtr_attr(*b, {}) : rts_attr({});
        if (step == GetParam().step) {
            ibv_qp_attr spoiled = attr;
            GetParam().spoil(spoiled);
            EXPECT_EQ(ibv_modify_qp(a->qp, &spoiled, masks[step]), EINVAL);
            EXPECT_EQ(a->state(), before[step]);
        }
        EXPECT_EQ(ibv_modify_qp(a->qp, &attr, masks[step]), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Rc, BadAttribute,
    testing::Values(
        BadValue{"port_0", 0, [](ibv_qp_attr& attr) { attr.port_num = 0; }},
        BadValue{"port_2", 0, [](ibv_qp_attr& attr) { attr.port_num = 2; }},
        BadValue{"pkey_index", 0, [](ibv_qp_attr& attr) { attr.pkey_index = 65535; }},
        BadValue{"access_bit", 0, [](ibv_qp_attr& attr) { attr.qp_access_flags = 1U << 30; }},
        BadValue{"mtu_0", 1, [](ibv_qp_attr& attr) { attr.path_mtu = ibv_mtu{}; }},
        BadValue{"mtu_6", 1, [](ibv_qp_attr& attr) { attr.path_mtu = static_cast<ibv_mtu>(6); }},
        BadValue{"dest_qpn", 1, [](ibv_qp_attr& attr) { attr.dest_qp_num = 1U << 24; }},
        BadValue{"rq_psn", 1, [](ibv_qp_attr& attr) { attr.rq_psn = 1U << 24; }},
        BadValue{"dest_reads", 1, [](ibv_qp_attr& attr) { attr.max_dest_rd_atomic = 255; }},
        BadValue{"rnr_timer", 1, [](ibv_qp_attr& attr) { attr.min_rnr_timer = 32; }},
        BadValue{"path_port", 1, [](ibv_qp_attr& attr) { attr.ah_attr.port_num = 2; }},
        BadValue{"service_level", 1, [](ibv_qp_attr& attr) { attr.ah_attr.sl = 16; }},
        BadValue{"timeout", 2, [](ibv_qp_attr& attr) { attr.timeout = 32; }},
        BadValue{"retries", 2, [](ibv_qp_attr& attr) { attr.retry_cnt = 8; }},
        BadValue{"rnr_retries", 2, [](ibv_qp_attr& attr) { attr.rnr_retry = 8; }},
        BadValue{"sq_psn", 2, [](ibv_qp_attr& attr) { attr.sq_psn = 1U << 24; }},
        BadValue{"reads", 2, [](ibv_qp_attr& attr) { attr.max_rd_atomic = 255; }}),
    [](const auto& row) { return row.param.name; });

TEST_F(RcState, MissingOrForeignAttributesAreEinval) {
    a = std::make_unique<End>(0, Connection{});
    ibv_qp_attr attr = init_attr({});
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask & ~IBV_QP_PORT), EINVAL);
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask | IBV_QP_QKEY), EINVAL);
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask | IBV_QP_TIMEOUT), EINVAL);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE), EINVAL);
    attr.qp_state = static_cast<ibv_qp_state>(7);
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE), EINVAL);
    EXPECT_EQ(a->state(), IBV_QPS_RESET);
}

TEST_F(RcState, CurrentStateMustBeTheTrueOne) {
    connect();
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.cur_qp_state = IBV_QPS_SQD;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
    attr.cur_qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
}

}  // namespace
}  // namespace verbs_test
