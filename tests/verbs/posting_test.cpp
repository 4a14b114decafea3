// Mistakes that ibv_post_send() and ibv_post_recv() themselves find, and where personalities
// differ.
#include <cerrno>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr auto kNoOpcode = static_cast<ibv_wr_opcode>(99);

class Posting : public TwoHosts {
  protected:
    void connect_as(const char* personality) {
        ASSERT_EQ(simverbs_set_personality(personality), 0);
        connect();
    }
    int send(std::uint64_t id) { return Request(IBV_WR_SEND).id(id).from(a->range(0, 8)).post(*a); }
    int unknown() { return Request(kNoOpcode).id(1).from(a->range(0, 8)).post(*a); }
    int inline_read() {
        return Request(IBV_WR_RDMA_READ)
            .id(1)
            .with(IBV_SEND_INLINE)
            .into(a->range(0, 8))
            .to(b->address(0), b->mr->rkey)
            .post(*a);
    }
    int fetch_and_add(std::uint64_t address, std::uint32_t length) {
        return Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
            .id(1)
            .into(a->range(0, length))
            .fetch_and_add(address, b->mr->rkey, 1)
            .post(*a);
    }
    void back_to_init() {
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
        ibv_qp_attr attr = init_attr({});
        ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask), 0);
    }
    void on_to_rts() {
        ibv_qp_attr attr = rtr_attr(*b, {});
        ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), 0);
        attr = rts_attr({});
        ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kRtsMask), 0);
        attr = init_attr({});
        ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kInitMask), 0);
        attr = rtr_attr(*a, {});
        ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kRtrMask), 0);
        attr = rts_attr({});
        ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kRtsMask), 0);
    }
};

// ---- an opcode that does not exist

TEST_F(Posting, AnUnknownOpcodeIsEinval) {
    for (const char* personality : {"spec", "connectx6"}) {
        SCOPED_TRACE(personality);
        connect_as(personality);
        EXPECT_EQ(unknown(), EINVAL);
        expect_silence();
        expect_works();
        TearDown();
        SetUp();
    }
}

TEST_F(Posting, AnUnknownOpcodeCompletesInErrorWithRxe) {
    connect_as("rxe");
    EXPECT_EQ(unknown(), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
}

TEST_F(Posting, AnOpcodeOfOtherServicesCompletesInError) {
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        SCOPED_TRACE(personality);
        connect_as(personality);
        EXPECT_EQ(Request(IBV_WR_TSO).id(1).from(a->range(0, 8)).post(*a), 0);
        EXPECT_EQ(a->wait().status, IBV_WC_LOC_QP_OP_ERR);
        TearDown();
        SetUp();
    }
}

// ---- inline data for what takes data

TEST_F(Posting, InlineOnAReadIsEinval) {
    connect_as("spec");
    EXPECT_EQ(inline_read(), EINVAL);
    expect_works();
}

TEST_F(Posting, InlineOnAReadIsIgnoredByConnectX6) {
    connect_as("connectx6");
    b->word(0) = 77;
    EXPECT_EQ(inline_read(), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->word(0), 77U);
}

TEST_F(Posting, InlineOnAReadCompletesInErrorWithRxe) {
    connect_as("rxe");
    EXPECT_EQ(inline_read(), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_PROT_ERR);
}

// ---- atomics

TEST_F(Posting, AnAtomicOfFourBytes) {
    connect_as("spec");
    EXPECT_EQ(fetch_and_add(b->address(0), 4), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_LEN_ERR);
    TearDown();
    SetUp();
    connect_as("rxe");
    EXPECT_EQ(fetch_and_add(b->address(0), 4), EINVAL);
    expect_works();
}

TEST_F(Posting, AnAtomicOfSixteenBytes) {
    connect_as("spec");
    EXPECT_EQ(fetch_and_add(b->address(0), 16), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_LEN_ERR);
    for (const char* personality : {"connectx6", "rxe"}) {
        SCOPED_TRACE(personality);
        TearDown();
        SetUp();
        connect_as(personality);
        b->word(0) = 40;
        EXPECT_EQ(fetch_and_add(b->address(0), 16), 0);
        EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
        EXPECT_EQ(a->word(0), 40U);
        EXPECT_EQ(a->word(8), 0U);
        EXPECT_EQ(b->word(0), 41U);
    }
}

TEST_F(Posting, AMisalignedAtomic) {
    connect_as("spec");
    EXPECT_EQ(fetch_and_add(b->address(4), 8), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_INV_REQ_ERR);
    TearDown();
    SetUp();
    connect_as("rxe");
    EXPECT_EQ(fetch_and_add(b->address(4), 8), EINVAL);
    expect_works();
}

// ---- too early

TEST_F(Posting, ASendBeforeRtsIsRefusedAndForgotten) {
    for (const char* const personality : {"spec", "connectx6"}) {
        connect_as(personality);
        back_to_init();
        EXPECT_EQ(send(1), EINVAL);
        on_to_rts();
        expect_silence();
        expect_works();
        TearDown();
        SetUp();
    }
}

TEST_F(Posting, ASendBeforeRtsIsRefusedAndFlushedLaterByRxe) {
    connect_as("rxe");
    back_to_init();
    EXPECT_EQ(send(1), EINVAL);
    on_to_rts();
    expect_silence();
    ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
    const ibv_wc wc = a->wait();
    EXPECT_EQ(wc.wr_id, 1U);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(Posting, ASendBeforeRtsIsRunWithTheNextDoorbellByRxe) {
    connect_as("rxe");
    back_to_init();
    EXPECT_EQ(send(1), EINVAL);
    on_to_rts();
    ASSERT_EQ(b->receive(10, {b->range(0, 8)}), 0);
    ASSERT_EQ(b->receive(11, {b->range(0, 8)}), 0);
    ASSERT_EQ(send(2), 0);
    EXPECT_EQ(a->wait().wr_id, 1U);
    EXPECT_EQ(a->wait().wr_id, 2U);
}

TEST_F(Posting, AReceiveInResetIsRefusedAndForgotten) {
    for (const char* const personality : {"spec", "connectx6", "rxe"}) {
        connect_as(personality);
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        EXPECT_EQ(a->receive(1, {a->range(0, 8)}), EINVAL);
        back_to_init();
        on_to_rts();
        ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
        EXPECT_TRUE(a->drain().empty());
        TearDown();
        SetUp();
    }
}

// ---- lists

TEST_F(Posting, WhatStandsBeforeTheFirstBadOneIsExecuted) {
    connect_as("spec");
    ibv_sge sge = a->range(0, 8);
    ibv_send_wr list[3]{};
    for (int i = 0; i < 3; ++i) {
        list[i].wr_id = static_cast<std::uint64_t>(i);
        list[i].opcode = i == 1 ? kNoOpcode : IBV_WR_SEND;
        list[i].sg_list = &sge;
        list[i].num_sge = 1;
        list[i].send_flags = IBV_SEND_SIGNALED;
        list[i].next = i < 2 ? &list[i + 1] : nullptr;
    }
    ASSERT_EQ(b->receive(10, {b->range(0, 8)}), 0);
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(a->qp, list, &bad), EINVAL);
    EXPECT_EQ(bad, &list[1]);
    EXPECT_EQ(a->wait().wr_id, 0U);
    EXPECT_EQ(b->wait().wr_id, 10U);
    expect_silence();
}

}  // namespace
}  // namespace verbs_test
