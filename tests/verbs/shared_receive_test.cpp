// Shared receive queues: order, the limit, resizing, what goes when a queue pair stops; and XRC.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint32_t kReceives = 8;

class Shared : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        Connection with;
        with.shared_receives = kReceives;
        connect(with);
    }
    void send(std::uint64_t id, std::uint32_t length = 16) {
        ASSERT_EQ(Request(IBV_WR_SEND).id(id).from(a->range(0, length)).post(*a), 0);
        EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    }
    [[nodiscard]] int set_limit(std::uint32_t limit) const {
        ibv_srq_attr attr{};
        attr.srq_limit = limit;
        return ibv_modify_srq(b->srq, &attr, IBV_SRQ_LIMIT);
    }
    [[nodiscard]] ibv_srq_attr query() const {
        ibv_srq_attr attr{};
        EXPECT_EQ(ibv_query_srq(b->srq, &attr), 0);
        return attr;
    }
};

TEST_F(Shared, ReceivesAreTakenInTheOrderOfPosting) {
    for (std::uint64_t id = 1; id <= 3; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(id * 64, 64)}), 0);
    }
    for (std::uint64_t id = 1; id <= 3; ++id) {
        send(id);
        EXPECT_EQ(b->wait().wr_id, id);
    }
}

TEST_F(Shared, ASlotIsFreeWhenItsCompletionHasBeenPolled) {
    for (std::uint64_t id = 0; id < kReceives; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(0, 64)}), 0);
    }
    EXPECT_EQ(b->receive(99, {b->range(0, 64)}), ENOMEM);
    send(1);
    EXPECT_EQ(b->receive(99, {b->range(0, 64)}), ENOMEM) << "completed, but not polled";
    EXPECT_EQ(b->wait().wr_id, 0U);
    EXPECT_EQ(b->receive(99, {b->range(0, 64)}), 0);
}

TEST_F(Shared, TooManySegmentsAreRefused) {
    EXPECT_EQ(b->receive(1, {b->range(0, 8), b->range(8, 8), b->range(16, 8)}), EINVAL);
}

TEST_F(Shared, WithoutAReceiveTheSenderWaits) {
    ASSERT_EQ(Request(IBV_WR_SEND).id(5).from(a->range(0, 16)).post(*a), 0);
    pass(1);
    EXPECT_TRUE(a->drain().empty());
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    EXPECT_EQ(b->wait().wr_id, 1U);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(Shared, TheLimitIsReportedOnceAndDisarmed) {
    for (std::uint64_t id = 1; id <= 4; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(0, 64)}), 0);
    }
    ASSERT_EQ(set_limit(3), 0);
    EXPECT_EQ(query().srq_limit, 3U);
    send(1);
    EXPECT_TRUE(b->events().empty()) << "three are left";
    send(2);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_SRQ_LIMIT_REACHED});
    EXPECT_EQ(query().srq_limit, 0U);
    send(3);
    EXPECT_TRUE(b->events().empty());
}

TEST_F(Shared, ALimitAlreadyReachedIsReportedAtOnce) {
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(set_limit(2), 0);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_SRQ_LIMIT_REACHED});
}

TEST_F(Shared, BadChangesAreRefused) {
    EXPECT_EQ(set_limit(kReceives + 1), EINVAL);
    ibv_srq_attr attr{};
    EXPECT_EQ(ibv_modify_srq(b->srq, &attr, 0), EINVAL);
    EXPECT_EQ(ibv_modify_srq(b->srq, &attr, 1 << 5), EINVAL);
    EXPECT_EQ(ibv_modify_srq(b->srq, &attr, IBV_SRQ_MAX_WR), EINVAL) << "no room at all";
}

TEST_F(Shared, ResizingKeepsWhatWaits) {
    for (std::uint64_t id = 0; id < kReceives; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(0, 64)}), 0);
    }
    send(100);
    ibv_srq_attr attr{};
    attr.max_wr = 20;
    ASSERT_EQ(ibv_modify_srq(b->srq, &attr, IBV_SRQ_MAX_WR), 0);
    EXPECT_EQ(query().max_wr, 20U);
    EXPECT_EQ(b->wait().wr_id, 0U);
    for (std::uint64_t id = kReceives; id < 21; ++id) {
        ASSERT_EQ(b->receive(id, {b->range(0, 64)}), 0) << id;
    }
    EXPECT_EQ(b->receive(99, {b->range(0, 64)}), ENOMEM);
    for (std::uint64_t id = 1; id < 21; ++id) {
        send(100 + id);
        EXPECT_EQ(b->wait().wr_id, id);
    }
    attr.max_wr = 1;
    EXPECT_EQ(ibv_modify_srq(b->srq, &attr, IBV_SRQ_MAX_WR), 0);
}

TEST_F(Shared, AQueuePairThatStopsLeavesTheReceivesAndSaysSo) {
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_ERR), 0);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_QP_LAST_WQE_REACHED});
    EXPECT_TRUE(b->drain().empty()) << "shared receives are not flushed";
}

TEST_F(Shared, IsBusyWhileAQueuePairUsesIt) {
    EXPECT_EQ(ibv_destroy_srq(b->srq), EBUSY);
    std::uint32_t number = 0;
    EXPECT_NE(ibv_get_srq_num(b->srq, &number), 0) << "only XRC queues have one";
}

TEST_F(Shared, TooSmallAReceiveFailsOnBothSides) {
    ASSERT_EQ(b->receive(1, {b->range(0, 8)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 16)).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(b->wait().status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_QP_LAST_WQE_REACHED});
}

// One initiator on each host, one target, and a shared receive queue that requests name.
// Its receives are looked at by the domain that it was made in; with rxe by the queue pair's.
TEST_F(Shared, ReceivesBelongToTheDomainOfTheQueue) {
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        for (const bool by_queue : {true, false}) {
            SCOPED_TRACE(std::string(personality) + (by_queue ? " queue's" : " queue pair's"));
            TearDown();
            TwoHosts::SetUp();  // NOLINT(bugprone-parent-virtual-call): not yet connected
            ASSERT_EQ(simverbs_set_personality(personality), 0);
            connect();
            ibv_pd* pd = ibv_alloc_pd(b->context);
            ibv_mr* mr = ibv_reg_mr(pd, b->at(), 4096, kAllAccess);
            ibv_srq_init_attr init{};
            init.attr.max_wr = kReceives;
            init.attr.max_sge = 1;
            ibv_srq* srq = ibv_create_srq(pd, &init);
            ASSERT_NE(srq, nullptr);
            std::swap(b->srq, srq);
            ibv_qp_init_attr of_shared{};
            of_shared.send_cq = of_shared.recv_cq = b->cq;
            of_shared.srq = b->srq;
            of_shared.cap = Connection{}.cap;
            of_shared.qp_type = IBV_QPT_RC;
            ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
            b->qp = ibv_create_qp(b->pd, &of_shared);
            ASSERT_NE(b->qp, nullptr);
            ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
            bring_up({});
            const std::uint32_t key = by_queue ? mr->lkey : b->mr->lkey;
            ASSERT_EQ(b->receive(1, {{b->address(), 64, key}}), 0);
            ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 16)).post(*a), 0);
            const bool goes = by_queue == (std::strcmp(personality, "rxe") != 0);
            EXPECT_EQ(a->wait().status, goes ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
            EXPECT_EQ(b->wait().status == IBV_WC_SUCCESS, goes);
            EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
            b->qp = nullptr;
            EXPECT_EQ(ibv_destroy_srq(b->srq), 0);
            b->srq = nullptr;
            EXPECT_EQ(ibv_dereg_mr(mr), 0);
            EXPECT_EQ(ibv_dealloc_pd(pd), 0);
        }
    }
}

// mlx5_create_srq() has no lower bound; whatever is posted finds no room.
TEST_F(Shared, AQueueOfNoReceivesIsConnectX6s) {
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        SCOPED_TRACE(personality);
        TearDown();
        TwoHosts::SetUp();  // NOLINT(bugprone-parent-virtual-call): not yet connected
        ASSERT_EQ(simverbs_set_personality(personality), 0);
        connect();
        ibv_srq_init_attr init{};
        init.attr.max_sge = 1;
        ibv_srq* srq = ibv_create_srq(b->pd, &init);
        if (std::strcmp(personality, "connectx6") != 0) {
            EXPECT_EQ(srq, nullptr);
            EXPECT_EQ(errno, EINVAL);
            continue;
        }
        ASSERT_NE(srq, nullptr);
        EXPECT_EQ(init.attr.max_wr, 0U);
        ibv_recv_wr wr{};
        ibv_recv_wr* bad = nullptr;
        EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
        EXPECT_EQ(bad, &wr);
        EXPECT_EQ(ibv_destroy_srq(srq), 0);
    }
}

class Xrc : public TwoHosts {
  protected:
    struct Station {
        ibv_xrcd* domain = nullptr;
        ibv_srq* srq = nullptr;
        ibv_qp* target = nullptr;
        ibv_qp* initiator = nullptr;
        std::uint32_t number = 0;
    };
    void SetUp() override {
        TwoHosts::SetUp();
        a = std::make_unique<End>(0, Connection{});
        b = std::make_unique<End>(1, Connection{});
        open(*a, here);
        open(*b, there);
        bring_up_station(here, *b, there);
        bring_up_station(there, *a, here);
    }
    void TearDown() override {
        for (Station* station : {&here, &there}) {
            EXPECT_EQ(ibv_destroy_qp(station->initiator), 0);
            if (station->target != nullptr) {
                EXPECT_EQ(ibv_destroy_qp(station->target), 0);
            }
            if (station->srq != nullptr) {
                EXPECT_EQ(ibv_close_xrcd(station->domain), EBUSY);
                EXPECT_EQ(ibv_destroy_srq(station->srq), 0);
            }
            EXPECT_EQ(ibv_close_xrcd(station->domain), 0);
        }
        TwoHosts::TearDown();
    }
    static void open(End& end, Station& station) {
        ibv_xrcd_init_attr domain{};
        domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        domain.fd = -1;
        domain.oflags = O_CREAT;
        station.domain = ibv_open_xrcd(end.context, &domain);
        ASSERT_NE(station.domain, nullptr);
        ibv_srq_init_attr_ex shared{};
        shared.attr.max_wr = kReceives;
        shared.attr.max_sge = 1;
        shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                           IBV_SRQ_INIT_ATTR_PD;
        shared.srq_type = IBV_SRQT_XRC;
        shared.xrcd = station.domain;
        shared.cq = end.cq;
        shared.pd = end.pd;
        station.srq = ibv_create_srq_ex(end.context, &shared);
        ASSERT_NE(station.srq, nullptr);
        ASSERT_EQ(ibv_get_srq_num(station.srq, &station.number), 0);
        ibv_qp_init_attr_ex target{};
        target.qp_type = IBV_QPT_XRC_RECV;
        target.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        target.xrcd = station.domain;
        station.target = ibv_create_qp_ex(end.context, &target);
        ASSERT_NE(station.target, nullptr);
        ibv_qp_init_attr_ex initiator{};
        initiator.qp_type = IBV_QPT_XRC_SEND;
        initiator.comp_mask = IBV_QP_INIT_ATTR_PD;
        initiator.pd = end.pd;
        initiator.send_cq = end.cq;
        initiator.cap.max_send_wr = 8;
        initiator.cap.max_send_sge = 1;
        station.initiator = ibv_create_qp_ex(end.context, &initiator);
        ASSERT_NE(station.initiator, nullptr);
    }
    static void bring_up_station(Station& station, End& peer, const Station& there) {
        const Connection with;
        for (ibv_qp* qp : {station.target, station.initiator}) {
            const bool target = qp == station.target;
            ibv_qp_attr attr = init_attr(with);
            ASSERT_EQ(ibv_modify_qp(qp, &attr, kInitMask), 0);
            attr = rtr_attr(peer, with);
            attr.dest_qp_num = target ? there.initiator->qp_num : there.target->qp_num;
            const int rtr =
                target ? kRtrMask : kRtrMask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
            ASSERT_EQ(ibv_modify_qp(qp, &attr, rtr), 0);
            attr = rts_attr(with);
            const int rts = target ? IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN : kRtsMask;
            ASSERT_EQ(ibv_modify_qp(qp, &attr, rts), 0);
        }
    }
    int send(std::uint64_t id, std::uint32_t srqn, ibv_wr_opcode opcode = IBV_WR_SEND) {
        ibv_sge range = a->range(0, 64);
        ibv_send_wr wr{};
        wr.wr_id = id;
        wr.opcode = opcode;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.sg_list = &range;
        wr.num_sge = 1;
        wr.wr.rdma.remote_addr = b->address(4096);
        wr.wr.rdma.rkey = b->mr->rkey;
        wr.qp_type.xrc.remote_srqn = srqn;
        ibv_send_wr* bad = nullptr;
        return ibv_post_send(here.initiator, &wr, &bad);
    }
    Station here;
    Station there;
};

TEST_F(Xrc, TheAttributesOfRcServeBothEnds) {
    for (ibv_qp* qp : {here.target, here.initiator}) {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_RESET;
        ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
        attr = init_attr({});
        ASSERT_EQ(ibv_modify_qp(qp, &attr, kInitMask), 0);
        attr = rtr_attr(*b, {});
        EXPECT_EQ(ibv_modify_qp(qp, &attr, kRtrMask), 0);
        attr = rts_attr({});
        EXPECT_EQ(ibv_modify_qp(qp, &attr, kRtsMask), 0);
        EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_QKEY), EINVAL) << "what neither end ignores";
    }
}

TEST_F(Xrc, RequestsNameTheirReceiveQueue) {
    std::memset(a->at(), 0x3C, 64);
    ibv_sge range = b->range(0, 64);
    ibv_recv_wr wr{};
    wr.wr_id = 7;
    wr.sg_list = &range;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(there.srq, &wr, &bad), 0);
    ASSERT_EQ(send(1, there.number), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.wr_id, 7U);
    EXPECT_EQ(wc.byte_len, 64U);
    EXPECT_EQ(wc.qp_num, there.target->qp_num);
    EXPECT_EQ(*b->at(), 0x3C);
    ASSERT_EQ(send(2, there.number, IBV_WR_RDMA_WRITE), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(*b->at(4096), 0x3C);
    std::memset(a->at(), 0, 64);
    ASSERT_EQ(send(3, there.number, IBV_WR_RDMA_READ), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(*a->at(63), 0x3C);
}

TEST_F(Xrc, AQueueThatIsDestroyedTakesItsCompletionsAlong) {
    ibv_sge range = b->range(0, 64);
    ibv_recv_wr wr{};
    wr.sg_list = &range;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(there.srq, &wr, &bad), 0);
    ASSERT_EQ(send(1, there.number), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(ibv_destroy_srq(there.srq), 0);
    there.srq = nullptr;
    EXPECT_TRUE(b->drain().empty());
}

TEST_F(Xrc, AQueueThatIsNotThereIsAnInvalidRequest) {
    ASSERT_EQ(send(1, there.number + 5), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_INV_RD_REQ_ERR);
    EXPECT_EQ(b->events(), std::vector({IBV_EVENT_QP_ACCESS_ERR}));
}

// Linux does not look who opens it (ib_open_qp): its maker may, and more than once.
TEST_F(Xrc, ATargetMayBeOpenedInTheContextThatMadeIt) {
    ibv_qp_open_attr attr{};
    attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attr.qp_num = there.target->qp_num;
    attr.xrcd = there.domain;
    attr.qp_type = IBV_QPT_XRC_RECV;
    ibv_qp* first = ibv_open_qp(b->context, &attr);
    ASSERT_NE(first, nullptr) << std::strerror(errno);
    ibv_qp* second = ibv_open_qp(b->context, &attr);
    ASSERT_NE(second, nullptr) << std::strerror(errno);
    EXPECT_EQ(first->qp_num, there.target->qp_num);
    EXPECT_NE(first->handle, second->handle);
    ASSERT_EQ(send(1, there.number + 5), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_INV_RD_REQ_ERR);
    std::set<ibv_qp*> told;
    for (int i = 0; i < 3; ++i) {  // one event a handle
        ibv_async_event event{};
        ASSERT_EQ(ibv_get_async_event(b->context, &event), 0);
        EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
        told.insert(event.element.qp);
        ibv_ack_async_event(&event);
    }
    EXPECT_EQ(told, std::set({there.target, first, second}));
    // It lives until the last of them is gone, whose state is that of all.
    EXPECT_EQ(ibv_destroy_qp(there.target), 0);
    there.target = nullptr;
    EXPECT_EQ(ibv_destroy_qp(first), 0);
    ibv_qp_attr state{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(second, &state, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(state.qp_state, IBV_QPS_ERR);
    EXPECT_EQ(ibv_close_xrcd(there.domain), EBUSY);
    expect_reason("is used by 2 objects: SRQ ");
    expect_reason(", QP ");
    EXPECT_EQ(ibv_destroy_qp(second), 0);
    EXPECT_EQ(ibv_open_qp(b->context, &attr), nullptr);
}

TEST_F(Xrc, ATargetThatIsNotThereIsNotOpened) {
    ibv_qp_open_attr attr{};
    attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attr.qp_num = there.target->qp_num + 100;
    attr.xrcd = there.domain;
    attr.qp_type = IBV_QPT_XRC_RECV;
    EXPECT_EQ(ibv_open_qp(b->context, &attr), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

// Two openings of one file are one domain; without a file each is its own.
TEST_F(Xrc, ADomainIsKnownByItsFile) {
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    ibv_device** devices = ibv_get_device_list(nullptr);
    ibv_context* second = ibv_open_device(devices[1]);
    ibv_free_device_list(devices);
    ASSERT_NE(second, nullptr);
    ibv_xrcd_init_attr attr{};
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd = fileno(file);
    EXPECT_EQ(ibv_open_xrcd(b->context, &attr), nullptr) << "nobody has made it";
    attr.oflags = O_CREAT;
    ibv_xrcd* one = ibv_open_xrcd(b->context, &attr);
    ibv_xrcd* two = ibv_open_xrcd(second, &attr);
    ASSERT_NE(one, nullptr);
    ASSERT_NE(two, nullptr);
    attr.oflags = O_CREAT | O_EXCL;
    EXPECT_EQ(ibv_open_xrcd(second, &attr), nullptr);

    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_XRC_RECV;
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = one;
    ibv_qp* made = ibv_create_qp_ex(b->context, &init);
    ASSERT_NE(made, nullptr);
    ibv_qp_open_attr opening{};
    opening.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    opening.qp_num = made->qp_num;
    opening.xrcd = two;
    opening.qp_type = IBV_QPT_XRC_RECV;
    ibv_qp* opened = ibv_open_qp(second, &opening);
    ASSERT_NE(opened, nullptr);
    EXPECT_EQ(opened->qp_num, made->qp_num);
    // Its maker leaves; it lives on with the other.
    EXPECT_EQ(ibv_destroy_qp(made), 0);
    EXPECT_EQ(ibv_close_xrcd(one), 0);
    ibv_qp_attr to_init = init_attr({});
    EXPECT_EQ(ibv_modify_qp(opened, &to_init, kInitMask), 0);
    EXPECT_EQ(ibv_close_xrcd(two), EBUSY);
    expect_reason("is used by 1 object: QP ");
    EXPECT_EQ(ibv_destroy_qp(opened), 0);
    EXPECT_EQ(ibv_close_xrcd(two), 0);
    EXPECT_EQ(ibv_close_device(second), 0);
    EXPECT_EQ(std::fclose(file), 0);
}

}  // namespace
}  // namespace verbs_test
