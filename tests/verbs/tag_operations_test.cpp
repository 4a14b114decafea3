// Operations on the tags of a shared receive queue, and what such a queue may be made of.
#include <cerrno>

#include "tag_matching.hpp"

namespace verbs_test {
namespace {

// ---- operations

TEST_F(TagMatching, ATagThatWasRemovedMatchesNoMore) {
    connect_tags();
    ASSERT_EQ(b->receive(11, {b->range(0, 256)}), 0);
    ASSERT_EQ(add(1, 3, {b->range(0, 64)}, kWholeTag, 0), 0);
    ASSERT_EQ(remove(last_handle), 0);
    const TagCompletion removed = next();
    EXPECT_EQ(removed.opcode, IBV_WC_TM_DEL);
    EXPECT_EQ(removed.status, IBV_WC_SUCCESS);
    EXPECT_EQ(removed.wr_id, last_handle + 2000);
    send_eager(3, 8);
    EXPECT_EQ(next().wr_id, 11U);
}

TEST_F(TagMatching, RemovingATagThatAMessageHasTakenIsTmErr) {
    connect_tags();
    ASSERT_EQ(add(1, 3, {b->range(0, 64)}, kWholeTag, 0), 0);
    send_eager(3, 8);
    pass(1);
    ASSERT_EQ(remove(last_handle), 0);
    EXPECT_EQ(next().wr_id, 1U);
    const TagCompletion removed = next();
    EXPECT_EQ(removed.status, IBV_WC_TM_ERR);
    EXPECT_EQ(removed.opcode, IBV_WC_TM_DEL);
    EXPECT_EQ(b->state(), IBV_QPS_RTS) << "it concerns no queue pair";
    EXPECT_EQ(remove(last_handle), EINVAL) << "its last completion was polled";
}

TEST_F(TagMatching, AHandleIsFreeWhenItsLastCompletionHasBeenPolled) {
    TagLimits limits;
    limits.tags = 2;
    connect_tags(limits);
    ASSERT_EQ(add(1, 1, {b->range(0, 64)}), 0);
    ASSERT_EQ(add(2, 2, {b->range(64, 64)}), 0);
    EXPECT_EQ(add(3, 3, {b->range(128, 64)}), ENOMEM);
    send_eager(1, 8);
    pass(1);
    EXPECT_EQ(add(3, 3, {b->range(128, 64)}), ENOMEM) << "matched, but not polled";
    EXPECT_EQ(next().opcode, IBV_WC_TM_ADD);
    EXPECT_EQ(next().opcode, IBV_WC_TM_ADD);
    EXPECT_EQ(add(3, 3, {b->range(128, 64)}), ENOMEM);
    EXPECT_EQ(next().wr_id, 1U);
    EXPECT_EQ(add(3, 3, {b->range(128, 64)}, kWholeTag, 0), 0);
    EXPECT_EQ(remove(last_handle, 0), 0);
    EXPECT_EQ(add(4, 4, {b->range(128, 64)}), 0) << "removed without a completion";
}

TEST_F(TagMatching, AnOperationHoldsItsSlotUntilASignaledOneHasBeenPolled) {
    TagLimits limits;
    limits.operations = 2;
    connect_tags(limits);
    ASSERT_EQ(sync(0, IBV_OPS_TM_SYNC), 0);
    ASSERT_EQ(sync(0), 0);
    EXPECT_EQ(sync(0), ENOMEM);
    const TagCompletion done = next();
    EXPECT_EQ(done.opcode, IBV_WC_TM_SYNC);
    EXPECT_EQ(done.wr_id, 3000U);
    EXPECT_EQ(sync(0), 0);
    EXPECT_EQ(sync(0), 0);
}

TEST_F(TagMatching, AListStopsAtItsFirstBadOperation) {
    connect_tags();
    std::array<ibv_ops_wr, 3> ops{};
    ops[0].opcode = IBV_WR_TAG_SYNC;
    ops[0].flags = IBV_OPS_SIGNALED;
    ops[0].wr_id = 1;
    ops[0].next = &ops[1];
    ops[1].opcode = static_cast<ibv_ops_wr_opcode>(9);
    ops[1].next = &ops[2];
    ops[2] = ops[0];
    ops[2].next = nullptr;
    ibv_ops_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_srq_ops(tags, ops.data(), &bad), EINVAL);
    EXPECT_EQ(bad, &ops[1]);
    EXPECT_EQ(next().wr_id, 1U);
    pass(1);
    EXPECT_FALSE(poll());
    EXPECT_EQ(add(1, 1, {b->range(0, 8), b->range(8, 8)}), EINVAL) << "one segment at most";
    EXPECT_EQ(remove(8), EINVAL) << "beyond the list";
    EXPECT_EQ(remove(0), EINVAL) << "never added";
}

// ---- what may be asked for

TEST_F(TagMatching, AQueueThatMakesNoSenseIsRefused) {
    connect_tags();
    ibv_srq_init_attr_ex good{};
    good.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    good.comp_mask =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    good.srq_type = IBV_SRQT_TM;
    good.pd = b->pd;
    good.cq = ibv_cq_ex_to_cq(ex);
    good.tm_cap = {127, 32'768};
    const auto error_of = [this](ibv_srq_init_attr_ex init) {
        errno = 0;
        ibv_srq* srq = ibv_create_srq_ex(b->context, &init);
        const int error = errno;
        if (srq != nullptr) {
            EXPECT_EQ(ibv_destroy_srq(srq), 0);
            return 0;
        }
        return error;
    };
    EXPECT_EQ(error_of(good), 0);
    ibv_srq_init_attr_ex bad = good;
    bad.tm_cap.max_num_tags = 128;
    EXPECT_EQ(error_of(bad), EINVAL);
    bad = good;
    bad.tm_cap.max_num_tags = 0;
    EXPECT_EQ(error_of(bad), EINVAL);
    bad = good;
    bad.tm_cap.max_ops = 32'769;
    EXPECT_EQ(error_of(bad), EINVAL);
    bad = good;
    bad.cq = b->cq;
    EXPECT_EQ(error_of(bad), EINVAL) << "not an extended completion queue";
    for (const std::uint32_t missing :
         {IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_TM, IBV_SRQ_INIT_ATTR_PD}) {
        bad = good;
        bad.comp_mask &= ~missing;
        EXPECT_EQ(error_of(bad), EINVAL) << missing;
    }
}

TEST_F(TagMatching, SoftRoceHasNone) {
    ASSERT_EQ(simverbs_set_personality("rxe"), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("eth-pair"), 0) << simverbs_last_error();
    Connection with;
    with.shared_receives = 4;
    connect(with);
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(b->context, nullptr, &device), 0);
    EXPECT_EQ(device.tm_caps.max_num_tags, 0U);
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 4;
    ibv_cq_ex* cq = ibv_create_cq_ex(b->context, &wanted);
    ASSERT_NE(cq, nullptr);
    wanted.wc_flags = IBV_WC_EX_WITH_TM_INFO;
    errno = 0;
    EXPECT_EQ(ibv_create_cq_ex(b->context, &wanted), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_srq_init_attr_ex init{};
    init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    init.comp_mask =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    init.srq_type = IBV_SRQT_TM;
    init.pd = b->pd;
    init.cq = ibv_cq_ex_to_cq(cq);
    init.tm_cap = {1, 1};
    errno = 0;
    EXPECT_EQ(ibv_create_srq_ex(b->context, &init), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_ops_wr op{};
    ibv_ops_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_srq_ops(b->srq, &op, &bad), EOPNOTSUPP);
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(TagMatching, ItsQueueKeepsItsSize) {
    connect_tags();
    ibv_srq_attr attr{};
    attr.max_wr = 32;
    EXPECT_EQ(ibv_modify_srq(tags, &attr, IBV_SRQ_MAX_WR), EOPNOTSUPP);
}

TEST_F(TagMatching, OnlyReliableConnectionsMatchTags) {
    connect_tags();
    EXPECT_EQ(ibv_destroy_srq(tags), EBUSY);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = b->cq;
    init.srq = tags;
    init.cap = {.max_send_wr = 1, .max_recv_wr = 0, .max_send_sge = 1};
    init.qp_type = IBV_QPT_UD;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(b->pd, &init), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(TagMatching, AnOrdinarySharedQueueTakesNoOperations) {
    Connection with;
    with.shared_receives = 4;
    connect(with);
    ibv_ops_wr op{};
    op.opcode = IBV_WR_TAG_SYNC;
    ibv_ops_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_srq_ops(b->srq, &op, &bad), EINVAL);
    EXPECT_EQ(bad, &op);
}

TEST_F(TagMatching, TheListSaysHowFewReceivesAreLeft) {
    connect_tags();
    for (const std::uint64_t id : {11, 12}) {
        ASSERT_EQ(b->receive(id, {b->range(0, 256)}), 0);
    }
    ibv_srq_attr attr{};
    attr.srq_limit = 2;
    ASSERT_EQ(ibv_modify_srq(tags, &attr, IBV_SRQ_LIMIT), 0);
    ASSERT_EQ(add(1, 3, {b->range(512, 64)}, kWholeTag, 0), 0);
    send_eager(3, 8);
    EXPECT_EQ(next().wr_id, 1U);
    EXPECT_TRUE(b->events().empty()) << "a tagged buffer is no receive";
    send_eager(4, 8);
    EXPECT_EQ(next().wr_id, 11U);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_SRQ_LIMIT_REACHED});
}

}  // namespace
}  // namespace verbs_test
