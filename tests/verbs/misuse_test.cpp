// SIMVERBS_WARN=1: mistakes are named, a line a kind, and traced; without it nothing is said.
#include "misuse.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include <fcntl.h>

namespace verbs_test {
namespace {

TEST_F(Misuse, NoReceiveAsTheQueuePairEntersRtr) {
    connect();
    EXPECT_NE(said_of("no_receive_at_rtr"), "");
}

TEST_F(Misuse, AReceivePostedInInitIsEnough) {
    a = std::make_unique<End>(0, Connection{});
    b = std::make_unique<End>(1, Connection{});
    for (End* end : {a.get(), b.get()}) {
        ibv_qp_attr attr = init_attr({});
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, kInitMask), 0);
        ASSERT_EQ(end->receive(1, {end->range(0, 8)}), 0);
        attr = rtr_attr(end == a.get() ? *b : *a, {});
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, kRtrMask), 0);
    }
    EXPECT_EQ(said(), "");
}

TEST_F(Misuse, WhichAttributeIsMissingOrTooMany) {
    connect_with_receives();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr({});
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask & ~IBV_QP_PORT), EINVAL);
    const std::string missing = said_of("attribute_missing");
    EXPECT_NE(missing.find("RESET to INIT: PORT"), std::string::npos) << missing;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask | IBV_QP_TIMEOUT), EINVAL);
    const std::string superfluous = said_of("attribute_superfluous");
    EXPECT_NE(superfluous.find("RESET to INIT: TIMEOUT"), std::string::npos) << superfluous;
}

// Whatever is refused has its reason, each another one.
TEST_F(Misuse, WhyModifyingIsRefused) {
    connect();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    said();
    ibv_qp_attr attr = rts_attr({});
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtsMask), EINVAL);
    EXPECT_NE(said().find("RESET to RTS is no transition of RC"), std::string::npos);
    attr = init_attr({});
    attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask), 0);
    attr = rtr_attr(*b, {});
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask & ~IBV_QP_AV), EINVAL);
    EXPECT_NE(said().find("INIT to RTR lacks AV"), std::string::npos);
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask & ~IBV_QP_RQ_PSN), EINVAL);
    EXPECT_NE(said().find("INIT to RTR lacks RQ_PSN"), std::string::npos);
    attr.min_rnr_timer = 32;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), EINVAL);
    EXPECT_NE(said().find("INIT to RTR: min_rnr_timer 32 is more than 31"), std::string::npos);
    attr = rtr_attr(*b, {});
    attr.max_dest_rd_atomic = 255;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), EINVAL);
    EXPECT_NE(said().find("INIT to RTR: max_dest_rd_atomic 255 is more than "), std::string::npos);
    attr = rtr_attr(*b, {});
    attr.ah_attr.port_num = 0;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), EINVAL);
    EXPECT_NE(said().find("INIT to RTR: ah_attr.port_num 0 is none of the ports 1 to 1"),
              std::string::npos);
    attr = rtr_attr(*b, {});
    attr.path_mtu = static_cast<ibv_mtu>(6);
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), EINVAL);
    EXPECT_NE(said().find("path_mtu 6 is none of IBV_MTU_256 (1) to IBV_MTU_4096 (5)"),
              std::string::npos);
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), EINVAL);
    EXPECT_EQ(said(), "") << "a reason is said once";
}

TEST_F(Misuse, WhichMtuFramesLeave) {
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("eth-star:2,mtu=1500B"), 0) << simverbs_last_error();
    connect();
    said();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr({});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask), 0);
    attr = rtr_attr(*b, {});
    attr.path_mtu = IBV_MTU_4096;
    EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), EINVAL);
    const std::string text = said();
    EXPECT_NE(text.find("IBV_MTU_4096 is more than the port's active_mtu of 1024"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("`mtu: 4200B`"), std::string::npos) << text;
}

TEST_F(Misuse, WhyPostingIsRefused) {
    connect();
    said();
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.num_sge = 9;
    EXPECT_EQ(ibv_post_send(a->qp, &wr, &bad), EINVAL);
    EXPECT_NE(said().find("ibv_post_send refused"), std::string::npos);
    wr.num_sge = 0;
    wr.opcode = static_cast<ibv_wr_opcode>(99);
    EXPECT_EQ(ibv_post_send(a->qp, &wr, &bad), EINVAL);
    EXPECT_NE(said().find("99 is no opcode"), std::string::npos);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    wr.opcode = IBV_WR_SEND;
    EXPECT_EQ(ibv_post_send(a->qp, &wr, &bad), EINVAL);
    EXPECT_NE(said().find("the queue pair is in RESET, sends are taken from RTS on"),
              std::string::npos);
    EXPECT_EQ(a->receive(1, {}), EINVAL);
    EXPECT_NE(said().find("receives are taken from INIT on"), std::string::npos);
    EXPECT_EQ(b->receive(1, std::vector<ibv_sge>(9)), EINVAL);
    EXPECT_NE(said().find("num_sge is 9, the queue has 4"), std::string::npos);
    ibv_mw* mw = ibv_alloc_mw(a->pd, IBV_MW_TYPE_1);
    ibv_mw_bind bind{};
    EXPECT_EQ(ibv_bind_mw(a->qp, mw, &bind), EINVAL);
    EXPECT_NE(said().find("ibv_bind_mw refused"), std::string::npos);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

// The last refusal is told, not one before it; on stderr a full queue is no mistake.
TEST_F(Misuse, AFullQueueIsTheReasonOfItsRefusal) {
    Connection with;
    with.cap.max_send_wr = with.cap.max_recv_wr = 2;
    connect(with);
    EXPECT_EQ(b->receive(1, std::vector<ibv_sge>(9)), EINVAL);
    said();
    int error = 0;
    for (std::uint64_t id = 0; id < 100 && error == 0; ++id) {
        error = b->receive(id, {});
    }
    EXPECT_EQ(error, ENOMEM);
    EXPECT_NE(std::string(simverbs_last_error()).find("ibv_post_recv refused"), std::string::npos);
    EXPECT_NE(std::string(simverbs_last_error()).find("the queue is full: it holds 2 receives"),
              std::string::npos)
        << simverbs_last_error();
    error = 0;
    for (std::uint64_t id = 0; id < 100 && error == 0; ++id) {
        error = write(id, true);
    }
    EXPECT_EQ(error, ENOMEM);
    EXPECT_NE(std::string(simverbs_last_error()).find("it holds max_send_wr 2 requests"),
              std::string::npos)
        << simverbs_last_error();
    EXPECT_EQ(said(), "");
}

TEST_F(Misuse, AReceiveForAQueuePairOfASharedQueue) {
    connect();
    ibv_srq_init_attr srq_init{};
    srq_init.attr = {4, 1, 0};
    ibv_srq* srq = ibv_create_srq(a->pd, &srq_init);
    ASSERT_NE(srq, nullptr);
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = a->cq;
    init.srq = srq;
    init.cap = {4, 4, 1, 1, 0};
    ibv_qp* qp = ibv_create_qp(a->pd, &init);
    ASSERT_NE(qp, nullptr);
    said();
    ibv_sge piece = a->range(0, 8);
    ibv_recv_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), EINVAL);
    EXPECT_NE(said().find("takes its receives from its shared receive queue: ibv_post_srq_recv"),
              std::string::npos);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Misuse, AQueueFullOfUnsignaledRequests) {
    Connection with;
    with.cap.max_send_wr = 4;
    connect_with_receives(with);
    for (std::uint64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(write(i, i == 0), 0);
    }
    EXPECT_EQ(write(9, false), ENOMEM);
    EXPECT_EQ(said_of("only_unsignaled_sends"), "");  // the first will free its slot
    EXPECT_EQ(a->wait().wr_id, 0U);
    ASSERT_EQ(write(4, false), 0);
    EXPECT_EQ(write(9, false), ENOMEM);
    EXPECT_NE(said_of("only_unsignaled_sends"), "");
}

TEST_F(Misuse, ASegmentWithoutLength) {
    connect_with_receives();
    ASSERT_EQ(
        Request(IBV_WR_RDMA_WRITE).from(a->range(0, 0)).to(b->address(0), b->mr->rkey).post(*a), 0);
    EXPECT_NE(said_of("empty_segment"), "");
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(Misuse, ASegmentOfAReceiveWithoutLength) {
    connect_with_receives();
    ASSERT_EQ(b->receive(1, {b->range(0, 8)}), 0);
    EXPECT_EQ(said_of("empty_receive_segment"), "");
    ASSERT_EQ(b->receive(2, {b->range(0, 8), b->range(8, 0)}), 0);
    EXPECT_NE(said_of("empty_receive_segment"), "");
}

TEST_F(Misuse, ASegmentOfASharedReceiveWithoutLength) {
    Connection with;
    with.shared_receives = 4;
    connect_with_receives(with);
    ASSERT_EQ(b->receive(1, {b->range(0, 0)}), 0);
    EXPECT_NE(said_of("empty_receive_segment"), "");
}

TEST_F(Misuse, AKindIsNamedOnceAWorld) {
    for (int world = 0; world < 2; ++world) {
        connect_with_receives();
        for (int i = 0; i < 3; ++i) {
            ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                          .from(a->range(0, 0))
                          .to(b->address(0), b->mr->rkey)
                          .post(*a),
                      0);
            EXPECT_EQ(said_of("empty_segment").empty(), i != 0);
        }
        a.reset();
        b.reset();
        ASSERT_EQ(simverbs_restart(), 0);
    }
}

TEST_F(Misuse, AFieldThatAFailureDoesNotDefine) {
    connect();
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 16;
    wanted.wc_flags = IBV_WC_STANDARD_FLAGS;
    ibv_cq_ex* cq = ibv_create_cq_ex(a->context, &wanted);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RC;
    a->qp = ibv_create_qp(a->pd, &init);
    ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
    ASSERT_EQ(a->receive(1, {a->range(0, 8)}), 0);
    ibv_poll_cq_attr attr{};
    ASSERT_EQ(ibv_start_poll(cq, &attr), 0);
    EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
    ibv_wc_read_qp_num(cq);
    ibv_wc_read_vendor_err(cq);
    ibv_end_poll(cq);
    EXPECT_EQ(said_of("undefined_field"), "");
    ASSERT_EQ(a->receive(2, {a->range(0, 8)}), 0);
    ASSERT_EQ(ibv_start_poll(cq, &attr), 0);
    ibv_wc_read_byte_len(cq);
    ibv_end_poll(cq);
    EXPECT_NE(said_of("undefined_field"), "");
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(Misuse, EventsThatAreNotAcknowledged) {
    connect_with_receives();
    ASSERT_EQ(a->to_state(IBV_QPS_SQD), 0);
    ASSERT_EQ(a->to_state(IBV_QPS_RTS), 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(a->context, &event), 0);
    repeats = false;
    ibv_qp* doomed = a->qp;
    a->qp = nullptr;
    traced = 0;
    count_traced();
    std::thread destroyer([doomed] { EXPECT_EQ(ibv_destroy_qp(doomed), 0); });
    traced.wait(0);
    ibv_ack_async_event(&event);
    destroyer.join();
    EXPECT_NE(said_of("events_not_acknowledged").find("1 event taken, 0 acknowledged: too few"),
              std::string::npos);
}

TEST_F(Misuse, CompletionsThatGoUnread) {
    connect_with_receives();
    ASSERT_EQ(write(1, true), 0);
    ASSERT_EQ(write(2, true), 0);
    EXPECT_EQ(a->wait().wr_id, 1U);
    simverbs_advance_ps(1'000'000'000);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_NE(said_of("completions_unread").find("1 completion"), std::string::npos);
}

TEST_F(Misuse, CompletionsThatWerePolledAreNoMatter) {
    connect_with_receives();
    ASSERT_EQ(write(1, true), 0);
    EXPECT_EQ(a->wait().wr_id, 1U);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_EQ(said_of("completions_unread"), "");
}

TEST_F(Misuse, AQueueThatWasPolledOnceInVain) {
    connect_with_receives();
    ASSERT_EQ(write(1, true), 0);
    ibv_wc wc{};
    ASSERT_EQ(ibv_poll_cq(a->cq, 1, &wc), 0);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_NE(said_of("polled_once"), "");
}

TEST_F(Misuse, AQueuePairThatIsDestroyedTwice) {
    connect_with_receives();
    count_traced();
    ibv_qp* const qp = a->qp;
    const std::string number = "[" + in_hexadecimal(qp->qp_num) + "]: queue pair; called from ";
    a->qp = nullptr;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(said_of("destroyed_twice"), "");
    traced = 0;
    errno = 0;
    EXPECT_EQ(ibv_destroy_qp(qp), EINVAL);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_NE(said_of("destroyed_twice").find(number), std::string::npos);
    traced.wait(0);
    EXPECT_EQ(traced, 1U);
}

TEST_F(Misuse, OtherObjectsThatAreDestroyedTwice) {
    connect_with_receives();
    ibv_context* const context = ibv_open_device(a->context->device);
    ibv_pd* const pd = ibv_alloc_pd(context);
    ibv_cq* const cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
    std::uint64_t word = 0;
    ibv_mr* const mr = ibv_reg_mr(pd, &word, sizeof word, 0);
    for (const int wanted : {0, EINVAL}) {
        EXPECT_EQ(ibv_dereg_mr(mr), wanted);
        EXPECT_EQ(ibv_destroy_cq(cq), wanted);
    }
    for (const int wanted : {0, EINVAL}) {
        EXPECT_EQ(ibv_dealloc_pd(pd), wanted);
    }
    ibv_pd* const later = ibv_alloc_pd(context);
    EXPECT_EQ(ibv_dealloc_pd(later), 0) << "a new object is none of those that have ended";
    for (const int wanted : {0, EINVAL}) {
        EXPECT_EQ(ibv_close_device(context), wanted);
    }
    EXPECT_NE(said_of("destroyed_twice").find("memory region"), std::string::npos);
}

TEST_F(Misuse, QueuesThatAreUsedAfterTheyWereDestroyed) {
    connect_with_receives();
    ibv_cq* const cq = ibv_create_cq(a->context, 4, nullptr, nullptr, 0);
    ibv_srq_init_attr shared{};
    shared.attr.max_wr = shared.attr.max_sge = 1;
    ibv_srq* const srq = ibv_create_srq(a->pd, &shared);
    ibv_qp* const qp = a->qp;
    a->qp = nullptr;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    EXPECT_EQ(said_of("used_after_destroy"), "");
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), -1);
    EXPECT_NE(said_of("used_after_destroy").find("completion queue; called from "),
              std::string::npos);
    EXPECT_EQ(ibv_req_notify_cq(cq, 0), EINVAL);
    EXPECT_EQ(ibv_resize_cq(cq, 8), EINVAL);
    ibv_recv_wr receive{};
    ibv_recv_wr* bad_receive = nullptr;
    EXPECT_EQ(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
    EXPECT_EQ(bad_receive, &receive);
    EXPECT_EQ(ibv_post_srq_recv(srq, &receive, &bad_receive), EINVAL);
    ibv_send_wr send{};
    ibv_send_wr* bad_send = nullptr;
    EXPECT_EQ(ibv_post_send(qp, &send, &bad_send), EINVAL);
    EXPECT_EQ(bad_send, &send);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
    ibv_srq_attr limits{};
    EXPECT_EQ(ibv_query_srq(srq, &limits), EINVAL);
}

TEST_F(Misuse, AQueueThatIsDrainedMayEndEmpty) {
    connect_with_receives();
    ASSERT_EQ(write(1, true), 0);
    a->wait();
    ASSERT_EQ(write(2, false), 0);  // makes no completion
    ibv_wc wc{};
    ASSERT_EQ(ibv_poll_cq(a->cq, 1, &wc), 0);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_EQ(said(), "");
}

TEST_F(Misuse, ADeviceClosedWithObjectsOnIt) {
    connect_with_receives();
    ibv_device** devices = ibv_get_device_list(nullptr);
    ibv_context* context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    static ibv_cq* left_behind = nullptr;
    left_behind = ibv_create_cq(context, 4, nullptr, nullptr, 0);
    ASSERT_NE(left_behind, nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
    EXPECT_NE(said_of("not_destroyed").find("0 queue pairs and 1 completion queue"),
              std::string::npos);
}

TEST_F(Misuse, ADeviceClosedWithObjectsThatAreNoQueues) {
    connect_with_receives();
    ibv_context* const context = ibv_open_device(a->context->device);
    static ibv_pd* domain = nullptr;  // static, since their memory stays allocated
    static std::array<ibv_mr*, 3> regions{};
    static ibv_comp_channel* channel = nullptr;
    static std::uint64_t word = 0;
    domain = ibv_alloc_pd(context);
    for (ibv_mr*& region : regions) {
        region = ibv_reg_mr(domain, &word, sizeof word, 0);
    }
    EXPECT_EQ(ibv_dereg_mr(regions[2]), 0);
    channel = ibv_create_comp_channel(context);
    ASSERT_NE(channel, nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
    EXPECT_NE(said_of("not_destroyed")
                  .find("0 queue pairs and 0 completion queues, 1 protection domain, 2 memory "
                        "regions, 1 completion channel"),
              std::string::npos);
}

TEST_F(Misuse, IsTracedAndChangesNoDigest) {
    const auto run = [this](const char* warn) {
        setenv("SIMVERBS_WARN", warn, 1);
        traced = 0;
        connect();
        count_traced();
        EXPECT_EQ(
            Request(IBV_WR_RDMA_WRITE).from(a->range(0, 0)).to(b->address(0), b->mr->rkey).post(*a),
            0);
        a->wait();
        EXPECT_EQ(simverbs_trace_callback(nullptr, nullptr), 0);
        const std::uint64_t digest = run_digest();
        a.reset();
        b.reset();
        EXPECT_EQ(simverbs_restart(), 0);
        return digest;
    };
    const std::uint64_t with = run("1");
    EXPECT_EQ(traced, 1U);
    EXPECT_NE(said(), "");
    const std::uint64_t without = run("0");
    EXPECT_EQ(traced, 0U);
    EXPECT_EQ(said(), "");
    EXPECT_EQ(with, without);
}

}  // namespace
}  // namespace verbs_test
