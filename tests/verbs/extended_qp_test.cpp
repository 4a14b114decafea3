// Extended queue pairs: creation, and posting by function.
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint64_t kRcOperations =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

class ExtendedQp : public TwoHosts {
  protected:
    ibv_qp_init_attr_ex attributes(std::uint64_t operations) {
        ibv_qp_init_attr_ex init{};
        init.send_cq = init.recv_cq = a->cq;
        init.cap = Connection{}.cap;
        init.qp_type = IBV_QPT_RC;
        init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        init.pd = a->pd;
        init.send_ops_flags = operations;
        return init;
    }
    int refusal(ibv_qp_init_attr_ex init) {
        errno = 0;
        ibv_qp* made = ibv_create_qp_ex(a->context, &init);
        const int error = errno;
        if (made == nullptr) {
            return error;
        }
        EXPECT_EQ(ibv_destroy_qp(made), 0);
        return 0;
    }
    // `a` gets an extended queue pair, connected to `b`.
    void connect_extended(std::uint32_t slots = 16) {
        connect();
        make_extended(slots);
        bring_up({});
    }
    void make_extended(std::uint32_t slots = 16) {
        ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
        ibv_qp_init_attr_ex init = attributes(kRcOperations);
        init.cap.max_send_wr = slots;
        a->qp = ibv_create_qp_ex(a->context, &init);
        ASSERT_NE(a->qp, nullptr);
        EXPECT_GE(init.cap.max_send_wr, slots);
        qp = ibv_qp_to_qp_ex(a->qp);
        ASSERT_NE(qp, nullptr);
        ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    }
    void next(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
        qp->wr_id = id;
        qp->wr_flags = flags;
    }
    void data(std::size_t offset, std::uint32_t length) {
        ibv_wr_set_sge(qp, a->mr->lkey, a->address(offset), length);
    }
    void expect_success(std::uint64_t id, ibv_wc_opcode opcode) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, opcode);
    }

    ibv_qp_ex* qp = nullptr;
};

// ---- creation

TEST_F(ExtendedQp, OnlyAQueuePairMadeWithOperationsHasThem) {
    connect();
    EXPECT_EQ(ibv_qp_to_qp_ex(a->qp), nullptr);
    ibv_qp_init_attr_ex init = attributes(0);
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    ibv_qp* plain = ibv_create_qp_ex(a->context, &init);
    ASSERT_NE(plain, nullptr);
    EXPECT_EQ(ibv_qp_to_qp_ex(plain), nullptr);
    EXPECT_EQ(ibv_destroy_qp(plain), 0);
    init = attributes(IBV_QP_EX_WITH_SEND);
    ibv_qp* extended = ibv_create_qp_ex(a->context, &init);
    ASSERT_NE(extended, nullptr);
    ibv_qp_ex* functions = ibv_qp_to_qp_ex(extended);
    ASSERT_NE(functions, nullptr);
    EXPECT_NE(functions->wr_send, nullptr);
    EXPECT_EQ(functions->wr_rdma_read, nullptr);
    EXPECT_EQ(ibv_destroy_qp(extended), 0);
}

TEST_F(ExtendedQp, OperationsThatTheServiceLacksAreEopnotsupp) {
    connect();
    EXPECT_EQ(refusal(attributes(kRcOperations)), 0);
    for (const std::uint64_t operation :
         {std::uint64_t{IBV_QP_EX_WITH_TSO}, std::uint64_t{1} << 20, ~std::uint64_t{0}}) {
        EXPECT_EQ(refusal(attributes(operation)), EOPNOTSUPP) << operation;
    }
}

TEST_F(ExtendedQp, WhatIsMissingOrUnknownIsEinvalAndWhatIsNotModelledEopnotsupp) {
    connect();
    ibv_qp_init_attr_ex init = attributes(IBV_QP_EX_WITH_SEND);
    init.pd = nullptr;
    EXPECT_EQ(refusal(init), EINVAL);
    init = attributes(IBV_QP_EX_WITH_SEND);
    init.comp_mask |= 1U << 20;
    EXPECT_EQ(refusal(init), EINVAL);
    init = attributes(IBV_QP_EX_WITH_SEND);
    init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.create_flags = 1U << 0;
    EXPECT_EQ(refusal(init), EINVAL);
    for (const unsigned flag :
         {IBV_QP_CREATE_SCATTER_FCS, IBV_QP_CREATE_CVLAN_STRIPPING, IBV_QP_CREATE_SOURCE_QPN}) {
        init.create_flags = flag;
        EXPECT_EQ(refusal(init), EOPNOTSUPP) << flag;
    }
    init.create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING;
    EXPECT_EQ(refusal(init), 0);
    init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    EXPECT_EQ(refusal(init), EINVAL);  // an RC queue pair is in no group
    init.create_flags = 0;
    init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    init.max_tso_header = 64;
    EXPECT_EQ(refusal(init), EOPNOTSUPP);
    init.max_tso_header = 0;
    EXPECT_EQ(refusal(init), 0);
    init.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH;
    EXPECT_EQ(refusal(init), EINVAL);  // without a table
    init = attributes(IBV_QP_EX_WITH_SEND);
    init.cap.max_send_sge = 1U << 20;
    EXPECT_EQ(refusal(init), EINVAL);
}

// ---- posting

TEST_F(ExtendedQp, SendsInABatchArriveInOrder) {
    connect_extended();
    std::memset(a->at(0), 0x11, 64);
    std::memset(a->at(100), 0x22, 9);
    for (std::uint64_t i = 0; i < 3; ++i) {
        ASSERT_EQ(b->receive(100 + i, {b->range(512 * i, 512)}), 0);
    }
    char inline_bytes[20];
    std::memset(inline_bytes, 0x33, sizeof inline_bytes);

    ibv_wr_start(qp);
    next(1);
    ibv_wr_send(qp);
    data(0, 64);
    next(2, 0);
    ibv_wr_send_imm(qp, htonl(0x1234ABCD));
    const ibv_sge both[2] = {a->range(0, 8), a->range(100, 9)};
    ibv_wr_set_sge_list(qp, 2, both);
    next(3);
    ibv_wr_send(qp);
    ibv_wr_set_inline_data(qp, inline_bytes, sizeof inline_bytes);
    std::memset(inline_bytes, 0, sizeof inline_bytes);  // the bytes were taken
    ASSERT_EQ(ibv_wr_complete(qp), 0);

    EXPECT_EQ(b->wait().byte_len, 64U);
    const ibv_wc second = b->wait();
    EXPECT_EQ(second.byte_len, 17U);
    EXPECT_EQ(second.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(second.imm_data, htonl(0x1234ABCD));
    EXPECT_EQ(b->wait().byte_len, 20U);
    EXPECT_EQ(*b->at(63), 0x11);
    EXPECT_EQ(*b->at(512 + 16), 0x22);
    EXPECT_EQ(*b->at(1024 + 19), 0x33);
    expect_success(1, IBV_WC_SEND);
    expect_success(3, IBV_WC_SEND);  // the second was not signaled
}

TEST_F(ExtendedQp, RemoteOperations) {
    connect_extended();
    a->word(0) = 5;
    b->word(64) = 40;
    ASSERT_EQ(b->receive(100, {}), 0);
    ibv_wr_start(qp);
    next(1);
    ibv_wr_rdma_write(qp, b->mr->rkey, b->address(0));
    data(0, 8);
    next(2);
    ibv_wr_rdma_read(qp, b->mr->rkey, b->address(64));
    data(64, 8);
    next(3);
    ibv_wr_atomic_cmp_swp(qp, b->mr->rkey, b->address(64), 40, 41);
    data(72, 8);
    next(4);
    ibv_wr_atomic_fetch_add(qp, b->mr->rkey, b->address(64), 2);
    data(80, 8);
    next(5);
    ibv_wr_rdma_write_imm(qp, b->mr->rkey, b->address(128), htonl(7));
    const ibv_data_buf buffers[2] = {{a->at(0), 8}, {a->at(0), 4}};
    ibv_wr_set_inline_data_list(qp, 2, buffers);
    ASSERT_EQ(ibv_wr_complete(qp), 0);

    expect_success(1, IBV_WC_RDMA_WRITE);
    expect_success(2, IBV_WC_RDMA_READ);
    expect_success(3, IBV_WC_COMP_SWAP);
    expect_success(4, IBV_WC_FETCH_ADD);
    expect_success(5, IBV_WC_RDMA_WRITE);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc.byte_len, 12U);
    EXPECT_EQ(b->word(0), 5U);
    EXPECT_EQ(a->word(64), 40U);
    EXPECT_EQ(a->word(72), 40U);
    EXPECT_EQ(a->word(80), 41U);
    EXPECT_EQ(b->word(64), 43U);
    EXPECT_EQ(b->word(128), 5U);
}

TEST_F(ExtendedQp, ARequestWithoutDataIsAMessageWithoutBytes) {
    connect_extended();
    ASSERT_EQ(b->receive(100, {b->range(0, 8)}), 0);
    ibv_wr_start(qp);
    next(1);
    ibv_wr_send(qp);
    ASSERT_EQ(ibv_wr_complete(qp), 0);
    EXPECT_EQ(b->wait().byte_len, 0U);
    expect_success(1, IBV_WC_SEND);
}

TEST_F(ExtendedQp, AbortTakesTheWholeBatchBack) {
    connect_extended();
    ibv_wr_start(qp);
    next(1);
    ibv_wr_send(qp);
    data(0, 8);
    next(2);
    ibv_wr_send(qp);
    data(0, 8);
    ibv_wr_abort(qp);
    expect_silence();
    expect_works();
}

TEST_F(ExtendedQp, AnEmptyBatchIsNothing) {
    connect_extended();
    ibv_wr_start(qp);
    EXPECT_EQ(ibv_wr_complete(qp), 0);
    expect_silence();
}

TEST_F(ExtendedQp, BatchesAndListsMayAlternate) {
    connect_extended();
    for (std::uint64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(b->receive(i, {b->range(0, 8)}), 0);
        if (i % 2 == 0) {
            ASSERT_EQ(Request(IBV_WR_SEND).id(i).from(a->range(0, 8)).post(*a), 0);
        } else {
            ibv_wr_start(qp);
            next(i);
            ibv_wr_send(qp);
            data(0, 8);
            ASSERT_EQ(ibv_wr_complete(qp), 0);
        }
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(a->wait().wr_id, i);
    }
}

TEST_F(ExtendedQp, WindowsAreBoundAndInvalidated) {
    connect();
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    ibv_qp_init_attr_ex init = attributes(IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV);
    a->qp = ibv_create_qp_ex(a->context, &init);
    ASSERT_NE(a->qp, nullptr);
    qp = ibv_qp_to_qp_ex(a->qp);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    ibv_mr* mr = ibv_reg_mr(a->pd, a->at(0), 4096, kAllAccess | IBV_ACCESS_MW_BIND);
    ibv_mw* mw = ibv_alloc_mw(a->pd, IBV_MW_TYPE_2);
    ASSERT_NE(mw, nullptr);
    const ibv_mw_bind_info info{mr, a->address(0), 64, IBV_ACCESS_REMOTE_WRITE};
    const auto write = [this, mw] {
        return Request(IBV_WR_RDMA_WRITE).from(b->range(0, 8)).to(a->address(0), mw->rkey).post(*b);
    };
    ibv_wr_start(qp);
    next(1);
    ibv_wr_bind_mw(qp, mw, ibv_inc_rkey(mw->rkey), &info);
    ASSERT_EQ(ibv_wr_complete(qp), 0);
    expect_success(1, IBV_WC_BIND_MW);
    ASSERT_EQ(write(), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    ibv_wr_start(qp);
    next(2);
    ibv_wr_local_inv(qp, mw->rkey);
    ASSERT_EQ(ibv_wr_complete(qp), 0);
    expect_success(2, IBV_WC_LOCAL_INV);
    ASSERT_EQ(write(), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(ExtendedQp, AtomicWritesAndFlushesReachTheMemory) {
    constexpr auto kFlushOperation = std::uint64_t{1} << 11U;  // newer than Debian 12's header
    connect();
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    ibv_qp_init_attr_ex init = attributes(IBV_QP_EX_WITH_ATOMIC_WRITE | kFlushOperation);
    a->qp = ibv_create_qp_ex(a->context, &init);
    ASSERT_NE(a->qp, nullptr);
    qp = ibv_qp_to_qp_ex(a->qp);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    const std::uint64_t value = 0x1122334455667788;
    ibv_wr_start(qp);
    next(1);
    ibv_wr_atomic_write(qp, b->mr->rkey, b->address(8), &value);
    ASSERT_EQ(ibv_wr_complete(qp), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(b->word(8), value);
}

// ---- mistakes: the batch is not there, and the queue pair goes on

TEST_F(ExtendedQp, MoreThanTheQueueHoldsIsEnomemForTheWholeBatch) {
    connect_extended(4);
    ibv_wr_start(qp);
    for (std::uint64_t i = 0; i < 5; ++i) {
        next(i);
        ibv_wr_send(qp);
        data(0, 8);
    }
    EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
    expect_silence();
    expect_works();
}

TEST_F(ExtendedQp, MoreInlineBytesOrSegmentsThanGrantedIsEnomem) {
    connect_extended();
    ibv_wr_start(qp);
    next(1);
    ibv_wr_send(qp);
    ibv_wr_set_inline_data(qp, a->at(0), 4000);
    next(2);
    ibv_wr_send(qp);
    data(0, 8);
    EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
    const ibv_sge many[5] = {a->range(0, 1), a->range(0, 1), a->range(0, 1), a->range(0, 1),
                             a->range(0, 1)};
    ibv_wr_start(qp);
    next(3);
    ibv_wr_send(qp);
    ibv_wr_set_sge_list(qp, 5, many);
    EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
    expect_silence();
    expect_works();
}

TEST_F(ExtendedQp, InlineDataForAReadIsEinval) {
    connect_extended();
    ibv_wr_start(qp);
    next(1);
    ibv_wr_rdma_read(qp, b->mr->rkey, b->address(0));
    ibv_wr_set_inline_data(qp, a->at(0), 8);
    EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
    expect_silence();
    expect_works();
}

TEST_F(ExtendedQp, ABatchBeforeRtsIsEinvalAndForgotten) {
    connect();
    make_extended();
    ibv_wr_start(qp);
    next(1);
    ibv_wr_send(qp);
    data(0, 8);
    EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
    bring_up({});
    expect_silence();
    expect_works();
}

TEST_F(ExtendedQp, ABatchInErrIsFlushed) {
    connect_extended();
    ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
    ibv_wr_start(qp);
    next(1);
    ibv_wr_send(qp);
    data(0, 8);
    EXPECT_EQ(ibv_wr_complete(qp), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(ExtendedQp, RxeCallsAFullQueueEnospc) {
    ASSERT_EQ(simverbs_set_personality("rxe"), 0);
    connect_extended(4);
    ibv_wr_start(qp);
    for (std::uint64_t i = 0; i < 40; ++i) {
        next(i);
        ibv_wr_send(qp);
        data(0, 8);
    }
    EXPECT_EQ(ibv_wr_complete(qp), ENOSPC);
}

}  // namespace
}  // namespace verbs_test
