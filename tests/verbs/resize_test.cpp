// New sizes for the queues of a queue pair: ibv_modify_qp() with CAP.
#include <cerrno>
#include <cstring>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Resize : public TwoHosts {
  protected:
    // An errno; what was granted goes to `granted`.
    int resize(const End& end, std::uint32_t sends, std::uint32_t receives) {
        ibv_qp_attr attr{};
        attr.cap.max_send_wr = sends;
        attr.cap.max_recv_wr = receives;
        const int error = ibv_modify_qp(end.qp, &attr, IBV_QP_CAP);
        granted = attr.cap;
        return error;
    }
    int post_send(std::uint64_t id) {
        return Request(IBV_WR_SEND).id(id).from(a->range(id * 64, 64)).post(*a);
    }
    static Connection small() {
        Connection with;
        with.cap.max_send_wr = with.cap.max_recv_wr = 3;
        return with;
    }

    ibv_qp_cap granted{};
};

TEST_F(Resize, IsSaidByTheDevice) {
    connect();
    ibv_device_attr attr{};
    ASSERT_EQ(ibv_query_device(a->context, &attr), 0);
    EXPECT_NE(attr.device_cap_flags & IBV_DEVICE_RESIZE_MAX_WR, 0U);
}

TEST_F(Resize, MakesRoomForMoreAndForFewer) {
    connect(small());
    ASSERT_EQ(resize(*a, 40, 20), 0);
    EXPECT_EQ(granted.max_send_wr, 40U);
    EXPECT_EQ(granted.max_recv_wr, 20U);
    EXPECT_EQ(granted.max_send_sge, small().cap.max_send_sge);
    EXPECT_EQ(a->query().cap.max_send_wr, 40U);
    EXPECT_EQ(a->query().cap.max_inline_data, small().cap.max_inline_data);
    for (std::uint64_t id = 0; id < 40; ++id) {
        ASSERT_EQ(post_send(id), 0);
    }
    EXPECT_EQ(post_send(40), ENOMEM);
    for (std::uint64_t id = 0; id < 20; ++id) {
        ASSERT_EQ(a->receive(id, {a->range(4096, 64)}), 0);
    }
    EXPECT_EQ(a->receive(20, {a->range(4096, 64)}), ENOMEM);

    ASSERT_EQ(resize(*b, 1, 2), 0);
    ASSERT_EQ(b->receive(0, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    EXPECT_EQ(b->receive(2, {b->range(0, 64)}), ENOMEM);
}

// Nobody can take them yet: they wait, inline bytes and all, while the queue moves.
TEST_F(Resize, KeepsTheSendsThatWait) {
    connect(small());
    for (std::uint64_t id = 0; id < 3; ++id) {
        std::memset(a->at(id * 64), static_cast<int>(id + 1), 64);
    }
    ASSERT_EQ(post_send(0), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).with(IBV_SEND_INLINE).from(a->range(64, 64)).post(*a), 0);
    std::memset(a->at(64), 0xEE, 64);
    ASSERT_EQ(post_send(2), 0);
    pass(1);
    ASSERT_EQ(resize(*a, 8, 3), 0);
    std::memset(a->at(3 * 64UL), 4, 64);
    ASSERT_EQ(post_send(3), 0);
    for (std::uint64_t id = 0; id < 3; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(id * 64, 64)}), 0);
    }
    for (std::uint64_t id = 0; id < 3; ++id) {
        const ibv_wc wc = b->wait();
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    }
    ASSERT_EQ(b->receive(3, {b->range(std::size_t{3} * 64, 64)}), 0);
    EXPECT_EQ(b->wait().wr_id, 3U);
    for (std::uint64_t id = 0; id < 4; ++id) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(b->at(id * 64)[63], id + 1);
    }
}

TEST_F(Resize, KeepsTheReceivesThatWait) {
    connect(small());
    // Not from the first slot on.
    ASSERT_EQ(b->receive(9, {b->range(0, 64)}), 0);
    ASSERT_EQ(post_send(9), 0);
    EXPECT_EQ(b->wait().wr_id, 9U);
    EXPECT_EQ(a->wait().wr_id, 9U);
    for (std::uint64_t id = 0; id < 3; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(id * 64, 64)}), 0);
    }
    ASSERT_EQ(resize(*b, 3, 16), 0);
    for (std::uint64_t id = 3; id < 16; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(id * 64, 64)}), 0);
    }
    for (std::uint64_t id = 0; id < 16; ++id) {
        a->at(id * 64)[0] = static_cast<std::uint8_t>(id + 1);
        ASSERT_EQ(post_send(id), 0);
        EXPECT_EQ(b->wait().wr_id, id);
        EXPECT_EQ(a->wait().wr_id, id);
        EXPECT_EQ(b->at(id * 64)[0], id + 1);
    }
}

TEST_F(Resize, FlushesWhatMovedAndResetForgetsIt) {
    connect(small());
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(resize(*b, 5, 5), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_ERR), 0);
    EXPECT_EQ(b->wait().wr_id, 1U);
    EXPECT_EQ(b->wait().wr_id, 2U);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up(small());
    EXPECT_EQ(b->query().cap.max_recv_wr, 5U);
    expect_works();
}

TEST_F(Resize, ThatCannotBeChangesNothing) {
    connect(small());
    for (std::uint64_t id = 0; id < 3; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(0, 64)}), 0);
        ASSERT_EQ(a->receive(id, {a->range(4096, 64)}), 0);
    }
    EXPECT_EQ(resize(*b, 3, 2), EINVAL);
    EXPECT_EQ(resize(*b, 1U << 30, 3), EINVAL);
    EXPECT_EQ(resize(*b, 3, 1U << 30), EINVAL);
    ibv_qp_attr attr{};
    attr.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 5};
    EXPECT_EQ(ibv_modify_qp(b->qp, &attr, IBV_QP_CAP), EINVAL);
    attr.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_inline_data = 1000};
    EXPECT_EQ(ibv_modify_qp(b->qp, &attr, IBV_QP_CAP), EINVAL);
    attr.cap = {.max_send_wr = 8, .max_recv_wr = 8};
    attr.min_rnr_timer = 99;
    EXPECT_EQ(ibv_modify_qp(b->qp, &attr, IBV_QP_CAP | IBV_QP_MIN_RNR_TIMER), EINVAL);
    EXPECT_EQ(b->query().cap.max_send_wr, 3U);
    EXPECT_EQ(b->query().cap.max_recv_wr, 3U);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    ASSERT_EQ(post_send(0), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    // Not on the way to INIT.
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr init = init_attr(small());
    EXPECT_EQ(ibv_modify_qp(a->qp, &init, kInitMask | IBV_QP_CAP), EINVAL);
    EXPECT_EQ(a->state(), IBV_QPS_RESET);
}

TEST_F(Resize, LeavesASharedQueueAlone) {
    Connection with = small();
    with.shared_receives = 8;
    connect(with);
    ibv_qp_attr attr{};
    attr.cap = with.cap;
    attr.cap.max_send_wr = 12;
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_CAP), 0);
    EXPECT_EQ(attr.cap.max_send_wr, 12U);
    EXPECT_EQ(attr.cap.max_recv_wr, 0U);
    expect_works();
}

TEST_F(Resize, IsRefusedByDevicesWithoutIt) {
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_personality("connectx6"), 0);
    connect();
    ibv_device_attr attr{};
    ASSERT_EQ(ibv_query_device(a->context, &attr), 0);
    EXPECT_EQ(attr.device_cap_flags & IBV_DEVICE_RESIZE_MAX_WR, 0U);
    EXPECT_EQ(resize(*a, 40, 20), EINVAL);
    expect_works();
}

}  // namespace
}  // namespace verbs_test
