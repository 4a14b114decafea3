// SIMVERBS_WARN=1: keys that have ended, and buffers that change while the device has them.
#include <cstdint>
#include <string>

#include "misuse.hpp"

namespace verbs_test {
namespace {

TEST_F(Misuse, AKeyOfASendThatWasDeregistered) {
    connect_with_receives();
    ibv_mr* mr = ibv_reg_mr(a->pd, a->at(0), 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    const ibv_sge segment{a->address(0), 8, mr->lkey};
    const auto write = [&] {
        return Request(IBV_WR_RDMA_WRITE).from(segment).to(b->address(0), b->mr->rkey).post(*a);
    };
    ASSERT_EQ(write(), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(said(), "");
    ASSERT_EQ(write(), 0);
    EXPECT_NE(said_of("key_after_dereg"), "");
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(Misuse, AKeyOfAReceiveThatWasDeregistered) {
    connect_with_receives();
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(0), 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    const ibv_sge segment{b->address(0), 8, mr->lkey};
    ASSERT_EQ(ibv_dereg_mr(mr), 0);
    ASSERT_EQ(b->receive(1, {segment}), 0);
    EXPECT_NE(said_of("key_after_dereg"), "");
}

TEST_F(Misuse, AKeyOfThePeerThatWasDeregistered) {
    connect_with_receives();
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(0), 4096, kAllAccess);
    ASSERT_NE(mr, nullptr);
    const std::uint32_t rkey = mr->rkey;
    ASSERT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(Request(IBV_WR_RDMA_WRITE).to(b->address(0), rkey).post(*a), 0);
    EXPECT_EQ(said(), "") << "no key is looked at for zero bytes";
    EXPECT_EQ(Request(IBV_WR_RDMA_READ).into(a->range(0, 8)).to(b->address(0), rkey).post(*a), 0);
    EXPECT_NE(said_of("key_after_dereg"), "");
}

TEST_F(Misuse, ABufferThatChangesBeforeItsCompletionIsPolled) {
    connect_with_receives();
    ASSERT_EQ(write(1, true), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    *a->at(3) = 9;
    EXPECT_EQ(said(), "") << "it is the program's again";
    ASSERT_EQ(write(2, false), 0);
    ASSERT_EQ(write(3, true), 0);
    *a->at(3) = 10;
    EXPECT_EQ(said(), "");
    EXPECT_EQ(a->wait().wr_id, 3U);
    const std::string said = said_of("buffer_changed");
    EXPECT_NE(said.find("work request 2"), std::string::npos) << said;
}

TEST_F(Misuse, ABufferThatNobodyTakesMayChange) {
    connect_with_receives();
    ASSERT_EQ(b->receive(7, {b->range(0, 8)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).with(IBV_SEND_INLINE).from(a->range(0, 8)).post(*a), 0);
    ASSERT_EQ(
        Request(IBV_WR_RDMA_READ).into(a->range(64, 8)).to(b->address(8), b->mr->rkey).post(*a), 0);
    std::fill_n(a->at(0), 128, std::uint8_t{5});
    std::fill_n(b->at(0), 8, std::uint8_t{6});
    a->wait();
    a->wait();
    b->wait();
    EXPECT_EQ(said(), "");
}

TEST_F(Misuse, ABufferThatIsDeregisteredBeforeItsCompletionIsPolled) {
    connect_with_receives();
    ibv_mr* used = ibv_reg_mr(b->pd, b->at(0), 4096, IBV_ACCESS_LOCAL_WRITE);
    ibv_mr* unused = ibv_reg_mr(b->pd, b->at(0), 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(used, nullptr);
    ASSERT_NE(unused, nullptr);
    ASSERT_EQ(b->receive(7, {{b->address(0), 8, used->lkey}}), 0);
    EXPECT_EQ(ibv_dereg_mr(unused), 0);
    EXPECT_EQ(said(), "");
    EXPECT_EQ(ibv_dereg_mr(used), 0);
    const std::string said = said_of("buffer_deregistered");
    EXPECT_NE(said.find("work request 7"), std::string::npos) << said;
}

TEST_F(Misuse, ABufferWhoseRegionEndsHasNotChanged) {
    connect_with_receives();
    ibv_mr* mr = ibv_reg_mr(a->pd, a->at(0), 4096, 0);
    ASSERT_NE(mr, nullptr);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .from({a->address(0), 8, mr->lkey})
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    a->wait();
    const std::string all = said();
    EXPECT_NE(all.find("buffer_deregistered"), std::string::npos) << all;
    EXPECT_EQ(all.find("buffer_changed"), std::string::npos) << all;
}

TEST_F(Misuse, WhatAQueuePairHasForgottenIsTheProgramsAgain) {
    connect_with_receives();
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(0), 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    ASSERT_EQ(b->receive(7, {{b->address(0), 8, mr->lkey}}), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(said(), "");
}

TEST_F(Misuse, BuffersAreWatchedByTheExtendedFunctionsToo) {
    connect_with_receives();
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 16;
    ibv_cq_ex* cq = ibv_create_cq_ex(a->context, &wanted);
    ASSERT_NE(cq, nullptr);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RC;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = a->pd;
    init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
    a->qp = ibv_create_qp_ex(a->context, &init);
    ASSERT_NE(a->qp, nullptr);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    said();
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(a->qp);
    ibv_wr_start(qp);
    qp->wr_id = 4;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, b->mr->rkey, b->address(0));
    ibv_wr_set_sge(qp, a->mr->lkey, a->address(0), 8);
    ASSERT_EQ(ibv_wr_complete(qp), 0);
    *a->at(7) = 1;
    ibv_poll_cq_attr attr{};
    int found = ENOENT;
    for (int i = 0; i < 1000 && found == ENOENT; ++i) {
        found = ibv_start_poll(cq, &attr);
    }
    ASSERT_EQ(found, 0);
    ibv_end_poll(cq);
    EXPECT_NE(said_of("buffer_changed").find("work request 4"), std::string::npos);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

}  // namespace
}  // namespace verbs_test
