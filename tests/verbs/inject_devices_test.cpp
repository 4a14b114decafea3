// simverbs_inject() on hosts, devices, their objects, work requests and calls.
#include "injection.hpp"

namespace verbs_test {
namespace {

class InjectedDevice : public Injection {
  protected:
    void SetUp() override {
        Injection::SetUp();
        watch();
    }
    static simverbs_fault on_host(simverbs_fault_action action, const char* node) {
        simverbs_fault fault = fault_of(action);
        fault.target.node = node;
        return fault;
    }
    static int listed() {
        int count = 0;
        ibv_free_device_list(ibv_get_device_list(&count));
        return count;
    }
    void exchange(std::uint64_t id) {
        ASSERT_EQ(b->receive(id, {b->range(0, 64)}), 0);
        ASSERT_EQ(Request(IBV_WR_SEND).id(id).from(a->range(0, 16)).post(*a), 0);
    }
};

// ---- what is told of faults

TEST_F(InjectedDevice, NameAndMatchesOfAFault) {
    connect();
    std::string name = "lost";
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DROP, 0);
    fault.nth = 4;
    fault.name = name.c_str();
    const std::uint32_t id = inject(fault);
    name.clear();
    EXPECT_EQ(records["h0 fault"], 1U);
    write(1, 3);
    expect(*a, 1, IBV_WC_SUCCESS);
    std::uint64_t matched = 0;
    ASSERT_EQ(simverbs_fault_matched(id, &matched), 0) << simverbs_last_error();
    EXPECT_EQ(matched, 3U);
    EXPECT_EQ(fired(id), 0U);
    EXPECT_EQ(simverbs_fault_matched(id + 1, &matched), ENOENT);
    inject(on_request(SIMVERBS_FAULT_DROP, 100));
    EXPECT_EQ(records["h0 fault"], 1U) << "it has no name";
}

// A packet of one host can set off a fault that is done to the queue pair of another one.
TEST_F(InjectedDevice, FiringsNameTheQueuePairThatFails) {
    connect();
    simverbs_fault fault = on_host(SIMVERBS_FAULT_QP_ERROR, "h1");
    fault.target.qp = 1;
    fault.on = SIMVERBS_ON_PACKET;
    fault.match.from = "h0";
    fault.match.qp = 1;
    inject(fault);
    write(1, 1);
    pass(1000);
    ASSERT_EQ(firings.size(), 1U);
    EXPECT_EQ(firings.front().node, "h0");
    EXPECT_EQ(firings.front().flow, a->qp->qp_num);
    constexpr std::uint64_t kSecondHost = 1;
    EXPECT_EQ(firings.front().target, kSecondHost);
    EXPECT_EQ(firings.front().target_qpn, b->qp->qp_num);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

// ---- hosts and devices

TEST_F(InjectedDevice, HostThatIsKilledIsSilent) {
    connect({.timeout = 10, .retries = 1});
    simverbs_fault fault = on_host(SIMVERBS_FAULT_HOST_KILL, "h1");
    fault.on = SIMVERBS_ON_PACKET;
    fault.match.from = "h0";
    fault.match.psn = 2;
    fault.match.qp = 1;
    const std::uint32_t id = inject(fault);
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 0U);
    write(2, 1, 2UL * kPacket);
    expect(*a, 2, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_TRUE(a->events().empty());
    EXPECT_TRUE(b->events().empty()) << "it has no power to say so";
    EXPECT_EQ(*b->at(2UL * kPacket), 0);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(b->qp, &attr, IBV_QP_STATE, &init), EIO);
    EXPECT_EQ(b->receive(1, {b->range(0, 8)}), EIO);
    EXPECT_TRUE(b->drain().empty());
    EXPECT_EQ(listed(), 2);
}

// The requests of a dead host end with it: nothing is sent again, and nothing completes.
TEST_F(InjectedDevice, DeadDeviceLeavesNothingUnderWay) {
    for (const simverbs_fault_action action :
         {SIMVERBS_FAULT_HOST_KILL, SIMVERBS_FAULT_DEVICE_FATAL, SIMVERBS_FAULT_DEVICE_REMOVE}) {
        connect({.timeout = 10, .retries = 7});
        simverbs_fault lost = on_request(SIMVERBS_FAULT_DROP, 0);
        lost.count = SIMVERBS_EVERY;
        inject(lost);
        write(1, 3);
        inject(on_host(action, "h0"));
        const std::size_t sent = records["h0 packet_sent"];
        EXPECT_GE(sent, 1U);
        pass(1000);
        EXPECT_EQ(records["h0 packet_sent"], sent) << simverbs_fault_action_str(action);
        EXPECT_EQ(records["h0 completion"], 0U) << simverbs_fault_action_str(action);
        EXPECT_TRUE(a->drain().empty());
        ibv_pd* const pd = ibv_alloc_pd(a->context);
        EXPECT_EQ(pd, nullptr);
        EXPECT_EQ(errno, EIO);
        a.reset();
        b.reset();
        ASSERT_EQ(simverbs_restart(), 0);
        records.clear();
        watch();
    }
}

// Faults that come later find no object to fail.
TEST_F(InjectedDevice, DeadDeviceHasNothingLeftToFail) {
    connect();
    ASSERT_EQ(a->receive(1, {a->range(0, 8)}), 0);
    simverbs_fault queue_pair = on_host(SIMVERBS_FAULT_QP_ERROR, "h0");
    queue_pair.target.qp = 1;
    simverbs_fault queue = on_host(SIMVERBS_FAULT_CQ_OVERRUN, "h0");
    queue.target.object = a->cq->handle;
    simverbs_fault region = on_host(SIMVERBS_FAULT_MR_INVALIDATE, "h0");
    region.target.object = a->mr->lkey;
    inject(on_host(SIMVERBS_FAULT_HOST_KILL, "h0"));
    for (const simverbs_fault& fault : {queue_pair, queue, region}) {
        inject(fault);
    }
    EXPECT_EQ(missed, std::vector<std::string>(3, "the device is dead"));
    EXPECT_EQ(records["h0 completion"], 0U);
    missed.clear();
    inject(on_host(SIMVERBS_FAULT_HOST_RESTART, "h0"));
    inject(queue_pair);
    inject(queue);
    EXPECT_EQ(missed, (std::vector<std::string>{"there is no such queue pair",
                                                "there is no such completion queue"}));
    EXPECT_EQ(records["h0 completion"], 0U);
}

// A device that was fatal before loses its power, and its links, all the same.
TEST_F(InjectedDevice, HostWithAFatalDeviceIsKilled) {
    connect();
    inject(on_host(SIMVERBS_FAULT_DEVICE_FATAL, "h1"));
    EXPECT_EQ(records["h1 port_state"], 0U);
    inject(on_host(SIMVERBS_FAULT_HOST_KILL, "h1"));
    EXPECT_NE(records["h1 port_state"], 0U);
    EXPECT_TRUE(missed.empty());
    inject(on_host(SIMVERBS_FAULT_DEVICE_ARRIVE, "h1"));
    inject(on_host(SIMVERBS_FAULT_HOST_KILL, "h1"));
    EXPECT_EQ(missed, (std::vector<std::string>{"its host has no power", "it has no power"}));
}

// Objects that were open stay dead, and take no part: old numbers and keys lead nowhere.
TEST_F(InjectedDevice, HostThatRestartsIsAFreshOne) {
    connect({.timeout = 10, .retries = 1});
    simverbs_fault fault = on_host(SIMVERBS_FAULT_HOST_KILL, "h1");
    fault.with.duration_ps = 10 * kMillisecond;
    inject(fault);
    pass(20);
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_GT(discarded("no such queue pair"), 0U);
    EXPECT_EQ(b->to_state(IBV_QPS_RESET), EIO);
    b.reset();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    b = std::make_unique<End>(1, Connection{});
    bring_up({});
    expect_works();
}

TEST_F(InjectedDevice, DeviceIsFatal) {
    connect({.timeout = 10, .retries = 1});
    inject(on_host(SIMVERBS_FAULT_DEVICE_FATAL, "h1"));
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_DEVICE_FATAL});
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    inject(on_host(SIMVERBS_FAULT_DEVICE_FATAL, "h1"));
    EXPECT_EQ(missed, std::vector<std::string>{"it is dead"});
}

TEST_F(InjectedDevice, DeviceIsRemovedAndArrives) {
    connect({.timeout = 10, .retries = 1});
    ASSERT_EQ(listed(), 2);
    ibv_device* device = b->context->device;
    inject(on_host(SIMVERBS_FAULT_DEVICE_REMOVE, "h1"));
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_DEVICE_FATAL});
    EXPECT_EQ(listed(), 1);
    EXPECT_EQ(ibv_open_device(device), nullptr);
    EXPECT_EQ(errno, ENODEV);
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    inject(on_host(SIMVERBS_FAULT_DEVICE_ARRIVE, "h1"));
    EXPECT_EQ(listed(), 2);
    pass(10);
    b.reset();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    b = std::make_unique<End>(1, Connection{});
    bring_up({});
    expect_works();
    inject(on_host(SIMVERBS_FAULT_DEVICE_ARRIVE, "h1"));
    EXPECT_EQ(missed, std::vector<std::string>{"it works"});
}

// ---- their objects

TEST_F(InjectedDevice, QueuePairFails) {
    connect();
    ASSERT_EQ(a->receive(1, {a->range(0, 8)}), 0);
    simverbs_fault fault = on_host(SIMVERBS_FAULT_QP_ERROR, "h0");
    fault.target.qp = 1;
    const std::uint32_t id = inject(fault);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_QP_FATAL});
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    expect(*a, 1, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    fault.target.qp = 2;
    inject(fault);
    EXPECT_EQ(missed, std::vector<std::string>{"there is no such queue pair"});
    fault.target.qp = 0;
    expect_refused(fault, EINVAL, "target.qp");
    fault.target.qp_num = a->qp->qp_num + 1000;
    expect_refused(fault, ENOENT, "ibv_qp.qp_num");
}

TEST_F(InjectedDevice, RingBecomesUnreadableInTheMiddleOfAMessage) {
    connect({.timeout = 10, .retries = 1});
    simverbs_fault fault = on_request(SIMVERBS_FAULT_RING, 3);
    fault.on = SIMVERBS_ON_PACKET;
    fault.target.node = "h1";
    fault.target.qp = 1;
    fault.target.queue = SIMVERBS_RECEIVE_QUEUE;
    inject(fault);
    write(1, 5);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_QP_FATAL});
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

TEST_F(InjectedDevice, SharedRingBecomesUnreadable) {
    connect({.shared_receives = 8});
    simverbs_fault fault = on_host(SIMVERBS_FAULT_SRQ_RING, "h1");
    fault.target.object = b->srq->handle;
    inject(fault);
    const std::vector<ibv_event_type> events = b->events();
    EXPECT_EQ(std::count(events.begin(), events.end(), IBV_EVENT_SRQ_ERR), 1);
    EXPECT_EQ(std::count(events.begin(), events.end(), IBV_EVENT_QP_FATAL), 1);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

TEST_F(InjectedDevice, CompletionQueueOverruns) {
    connect({.timeout = 10, .retries = 1});
    simverbs_fault fault = on_host(SIMVERBS_FAULT_CQ_OVERRUN, "h1");
    fault.target.object = b->cq->handle;
    inject(fault);
    const std::vector<ibv_event_type> events = b->events();
    EXPECT_EQ(events.front(), IBV_EVENT_CQ_ERR);
    EXPECT_EQ(std::count(events.begin(), events.end(), IBV_EVENT_QP_FATAL), 1);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_TRUE(b->drain().empty());
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    fault.target.object = 4711;
    inject(fault);
    EXPECT_EQ(missed, std::vector<std::string>{"there is no such completion queue"});
}

// The packets before it have landed.
TEST_F(InjectedDevice, RegionIsGoneInTheMiddleOfAMessage) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_MR_INVALIDATE, 3);
    fault.on = SIMVERBS_ON_PACKET;
    fault.match.link = "s0-h1";
    fault.match.from = "h0";
    fault.target.node = "h1";
    fault.target.object = b->mr->lkey;
    inject(fault);
    write(1, 2);
    expect(*a, 1, IBV_WC_SUCCESS);
    write(2, 4, 8UL * kPacket);
    expect(*a, 2, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(*b->at(11UL * kPacket), 0);
    EXPECT_EQ(ibv_dereg_mr(b->mr), 0);
    b->mr = nullptr;
}

// ---- work requests

TEST_F(InjectedDevice, NthSendCompletesWithAStatus) {
    connect();
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_COMPLETION);
    fault.match.node = "h0";
    fault.match.qp = 1;
    fault.nth = 2;
    fault.with.value = IBV_WC_RESP_TIMEOUT_ERR;
    const std::uint32_t id = inject(fault);
    exchange(1);
    exchange(2);
    exchange(3);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect(*a, 2, IBV_WC_RESP_TIMEOUT_ERR);
    expect(*a, 3, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    ASSERT_EQ(firings.size(), 1U);
    EXPECT_EQ(firings[0].node, "h0");
    EXPECT_EQ(firings[0].flow, a->qp->qp_num);
    EXPECT_EQ(firings[0].action, "completion");
}

TEST_F(InjectedDevice, NthReceiveCompletesWithAStatus) {
    connect();
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_COMPLETION);
    fault.match.node = "h1";
    fault.match.queue = SIMVERBS_RECEIVE_QUEUE;
    fault.nth = 2;
    fault.with.value = IBV_WC_LOC_PROT_ERR;
    inject(fault);
    exchange(1);
    exchange(2);
    expect(*b, 1, IBV_WC_SUCCESS);
    expect(*b, 2, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

TEST_F(InjectedDevice, FailsWhileExecutingOrWithAnUnknownSyndrome) {
    for (const auto& [action, status] : {std::pair{SIMVERBS_FAULT_EXECUTION, IBV_WC_FATAL_ERR},
                                         std::pair{SIMVERBS_FAULT_SYNDROME, IBV_WC_GENERAL_ERR}}) {
        if (a == nullptr) {
            connect();
        } else {
            ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
            ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
            bring_up({});
        }
        simverbs_fault fault = fault_of(action);
        fault.match.node = "h0";
        inject(fault);
        exchange(1);
        expect(*a, 1, status);
        fault.match.queue = SIMVERBS_RECEIVE_QUEUE;
        expect_refused(fault, EINVAL, "match.queue");
    }
}

TEST_F(InjectedDevice, WorkRequestSetsSomethingElseOff) {
    connect({.timeout = 10, .retries = 1});
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_QP_ERROR);
    fault.on = SIMVERBS_ON_WORK_REQUEST;
    fault.match.node = "h1";
    fault.match.queue = SIMVERBS_RECEIVE_QUEUE;
    inject(fault);
    exchange(1);
    expect(*b, 1, IBV_WC_SUCCESS);
    pass(1);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_QP_FATAL});
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

// ---- calls

TEST_F(InjectedDevice, NthCallFailsWithAnErrnoAndDoesNothing) {
    connect();
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_CALL);
    fault.match.node = "h0";
    fault.match.call = "ibv_modify_qp";
    fault.nth = 2;
    fault.with.value = EAGAIN;
    const std::uint32_t id = inject(fault);
    EXPECT_EQ(b->to_state(IBV_QPS_ERR), 0) << "another host";
    EXPECT_EQ(a->to_state(IBV_QPS_RTS), 0);
    EXPECT_EQ(a->to_state(IBV_QPS_ERR), EAGAIN);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
    EXPECT_EQ(a->to_state(IBV_QPS_ERR), 0);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(firings.back().action, "call");
    EXPECT_EQ(firings.back().node, "h0");
}

TEST_F(InjectedDevice, CallsThatMakeSomethingFailToo) {
    connect();
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_CALL);
    fault.with.value = ENOMEM;
    for (const char* call : {"ibv_reg_mr", "ibv_alloc_pd", "ibv_create_cq", "ibv_open_device"}) {
        fault.match.call = call;
        inject(fault);
    }
    errno = 0;
    EXPECT_EQ(ibv_alloc_pd(a->context), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(a->pd, a->at(0), 64, 0), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(ibv_create_cq(a->context, 1, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(ibv_open_device(a->context->device), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    ibv_pd* pd = ibv_alloc_pd(a->context);
    ASSERT_NE(pd, nullptr) << "once";
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    fault.match.call = "ibv_ack_cq_events";
    expect_refused(fault, EINVAL, "ibv_modify_qp");
    fault.match.call = "ibv_modify_qp";
    fault.with.value = 0;
    expect_refused(fault, EINVAL, "errno");
}

// Posts ask the device while a fault waits for one. A post that is refused leaves nothing behind.
TEST_F(InjectedDevice, PostsFail) {
    connect();
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_CALL);
    fault.match.node = "h0";
    fault.with.value = ENOMEM;
    fault.match.call = "ibv_post_send";
    fault.nth = 2;
    inject(fault);
    fault.match.call = "ibv_post_recv";
    fault.nth = 1;
    inject(fault);
    EXPECT_EQ(a->receive(9, {a->range(0, 8)}), ENOMEM);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(b->receive(9, {b->range(0, 64)}), 0) << "another host";
    exchange(1);
    expect(*a, 1, IBV_WC_SUCCESS);
    ibv_sge sge = a->range(0, 16);
    ibv_send_wr second{};
    ibv_send_wr first{};
    first.next = &second;
    first.sg_list = second.sg_list = &sge;
    first.num_sge = second.num_sge = 1;
    first.opcode = second.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(a->qp, &first, &bad), ENOMEM);
    EXPECT_EQ(bad, &first);
    EXPECT_NE(std::strstr(simverbs_last_error(), "an injected fault refuses this call"), nullptr)
        << simverbs_last_error();
    pass(100);
    EXPECT_TRUE(a->drain().empty()) << "nothing was posted";
    ASSERT_EQ(a->receive(2, {a->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, 16)).post(*a), 0) << "once";
    expect(*a, 3, IBV_WC_SUCCESS);
}

TEST_F(InjectedDevice, PostsAskForNothingWithoutSuchAFault) {
    connect();
    exchange(1);
    expect(*a, 1, IBV_WC_SUCCESS);
    const std::size_t verbs = records["h0 verb"];
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_CALL);
    fault.with.value = ENOMEM;
    fault.match.call = "ibv_post_send";
    fault.nth = 100;
    const std::uint32_t id = inject(fault);
    exchange(2);
    expect(*a, 2, IBV_WC_SUCCESS);
    EXPECT_EQ(records["h0 verb"], verbs + 1);
    EXPECT_EQ(simverbs_clear_fault(id), 0);
    exchange(3);
    expect(*a, 3, IBV_WC_SUCCESS);
    EXPECT_EQ(records["h0 verb"], verbs + 1);
}

TEST_F(InjectedDevice, RepeatsItself) {
    expect_repeats([this] {
        connect({.timeout = 10, .retries = 2});
        simverbs_fault fault = on_host(SIMVERBS_FAULT_HOST_KILL, "h1");
        fault.from_ps = now_us() * kMicrosecond + 3 * kMicrosecond;
        fault.with.duration_ps = kMillisecond;
        inject(fault);
        write(1, 100);
        expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    });
}

}  // namespace
}  // namespace verbs_test
