// simverbs_inject() on links, ports, switches and the subnet manager, what sets it off, and which
// faults it refuses.
#include "injection.hpp"

namespace verbs_test {
namespace {

class FabricFault : public Injection {
  protected:
    void SetUp() override {
        Injection::SetUp();
        watch();
    }
    static simverbs_fault on_link(simverbs_fault_action action, const char* link) {
        simverbs_fault fault = fault_of(action);
        fault.target.link = link;
        return fault;
    }
    static simverbs_fault on_node(simverbs_fault_action action, const char* node) {
        simverbs_fault fault = fault_of(action);
        fault.target.node = node;
        return fault;
    }
    static ibv_port_state port_state(const End& end) {
        ibv_port_attr attr{};
        EXPECT_EQ(ibv_query_port(end.context, 1, &attr), 0);
        return attr.state;
    }
};

TEST_F(FabricFault, LinkGoesDownForAWhile) {
    connect();
    simverbs_fault fault = on_link(SIMVERBS_FAULT_LINK_DOWN, "h0-s0");
    fault.from_ps = (now_us() + 1'000) * kMicrosecond;
    fault.with.duration_ps = 20 * kMillisecond;
    const std::uint32_t id = inject(fault);
    EXPECT_EQ(fired(id), 0U);
    pass(2);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(port_state(*a), IBV_PORT_DOWN);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_PORT_ERR});
    EXPECT_TRUE(b->events().empty());
    ASSERT_EQ(firings.size(), 1U);
    EXPECT_EQ(firings[0].time, fault.from_ps);
    EXPECT_EQ(firings[0].action, "link_down");
    write(1, 3);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect_written(3);
    EXPECT_EQ(port_state(*a), IBV_PORT_ACTIVE);
}

// In the middle of a message, so that the rest of it is retransmitted when the link is back.
TEST_F(FabricFault, LinkGoesDownBehindAPacket) {
    expect_repeats([this] {
        firings.clear();
        connect();
        simverbs_fault fault = on_request(SIMVERBS_FAULT_LINK_DOWN, 3);
        fault.on = SIMVERBS_ON_PACKET;
        fault.target.link = "s0-h1";
        fault.with.duration_ps = kMillisecond;
        const std::uint32_t id = inject(fault);
        write(1, 5);
        expect(*a, 1, IBV_WC_SUCCESS);
        EXPECT_EQ(fired(id), 1U);
        expect_written(5);
        EXPECT_EQ(b->events().front(), IBV_EVENT_PORT_ERR);
        EXPECT_TRUE(a->events().empty());
    });
}

TEST_F(FabricFault, LinkFlaps) {
    connect();
    simverbs_fault fault = on_link(SIMVERBS_FAULT_LINK_FLAP, "h1-s0");
    fault.with.duration_ps = kMillisecond;
    fault.with.interval_ps = 10 * kMillisecond;
    fault.with.times = 3;
    inject(fault);
    pass(100);
    std::size_t errors = 0;
    for (const ibv_event_type event : b->events()) {
        errors += event == IBV_EVENT_PORT_ERR ? 1 : 0;
    }
    EXPECT_EQ(errors, 3U);
    EXPECT_EQ(port_state(*b), IBV_PORT_ACTIVE);
    expect_works();
}

TEST_F(FabricFault, LinkThatStaysDownUsesUpRetriesUntilItIsUpAgain) {
    connect({.retries = 1});
    const std::uint32_t down = inject(on_link(SIMVERBS_FAULT_LINK_DOWN, "h1-s0"));
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(fired(down), 1U);
    inject(on_link(SIMVERBS_FAULT_LINK_UP, "h1-s0"));
    pass(5);
    EXPECT_EQ(port_state(*b), IBV_PORT_ACTIVE);
}

TEST_F(FabricFault, LinkGetsSlower) {
    connect();
    write(1, 500);
    std::int64_t from = now_us();
    expect(*a, 1, IBV_WC_SUCCESS);
    const std::int64_t fast = now_us() - from;
    simverbs_fault fault = on_link(SIMVERBS_FAULT_LINK_RATE, "h0-s0");
    fault.with.width = 1;
    fault.with.speed = 1;
    inject(fault);
    from = now_us();
    write(2, 500);
    expect(*a, 2, IBV_WC_SUCCESS);
    EXPECT_GT(now_us() - from, 10 * fast);
    expect_written(500);
}

TEST_F(FabricFault, PausedPortSendsLater) {
    connect();
    simverbs_fault fault = on_link(SIMVERBS_FAULT_PAUSE, "h0-s0");
    fault.target.node = "h0";
    fault.with.duration_ps = 500 * kMicrosecond;
    inject(fault);
    const std::int64_t from = now_us();
    write(1, 3);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_GE(now_us() - from, 500);
    EXPECT_LT(now_us() - from, 600) << "nothing was lost";
    expect_written(3);
    expect_both_live();
}

TEST_F(FabricFault, PortFailsForAWhile) {
    connect();
    simverbs_fault fault = on_node(SIMVERBS_FAULT_PORT_ERROR, "h1");
    fault.with.duration_ps = 5 * kMillisecond;
    inject(fault);
    pass(1);
    EXPECT_EQ(port_state(*b), IBV_PORT_DOWN);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_PORT_ERR});
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(port_state(*b), IBV_PORT_ACTIVE);
}

TEST_F(FabricFault, PortThatWorksAgainLeavesItsLinkDownWhereThatWasTakenDown) {
    connect();
    simverbs_fault fault = on_node(SIMVERBS_FAULT_PORT_ERROR, "h1");
    fault.with.duration_ps = 5 * kMillisecond;
    inject(fault);
    ASSERT_EQ(simverbs_set_link("h1-s0", 0), 0);
    pass(10);
    EXPECT_EQ(port_state(*b), IBV_PORT_DOWN);
    ASSERT_EQ(simverbs_set_link("h1-s0", 1), 0);
    pass(10);
    EXPECT_EQ(port_state(*b), IBV_PORT_ACTIVE);
}

TEST_F(FabricFault, SwitchDiesAndTakesItsLinksAlong) {
    connect({.timeout = 10, .retries = 1});
    const std::uint32_t id = inject(on_node(SIMVERBS_FAULT_SWITCH_DEATH, "s0"));
    EXPECT_EQ(fired(id), 1U);
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_PORT_ERR});
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_PORT_ERR});
    ASSERT_EQ(firings.size(), 1U);
    EXPECT_EQ(firings[0].node, "s0");
}

TEST_F(FabricFault, SwitchThatComesBackGoesOn) {
    connect();
    simverbs_fault fault = on_node(SIMVERBS_FAULT_SWITCH_DEATH, "s0");
    fault.with.duration_ps = 3 * kMillisecond;
    inject(fault);
    write(1, 4);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect_written(4);
}

// Nobody takes the ports to ACTIVE any more.
TEST_F(FabricFault, WithoutASubnetManagerPortsStayInInit) {
    connect();
    inject(fault_of(SIMVERBS_FAULT_SM_DEATH));
    expect_works();
    simverbs_fault fault = on_link(SIMVERBS_FAULT_LINK_DOWN, "h0-s0");
    fault.with.duration_ps = kMillisecond;
    inject(fault);
    pass(100);
    EXPECT_EQ(port_state(*a), IBV_PORT_INIT);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_PORT_ERR});
    expect_refused(fault_of(SIMVERBS_FAULT_SM_DEATH), EOPNOTSUPP, "no subnet manager");
    EXPECT_EQ(simverbs_port_set_lid("h0", 1, 77), EOPNOTSUPP);
}

TEST_F(FabricFault, LidChangesUnderTraffic) {
    connect({.timeout = 10, .retries = 1});
    simverbs_fault fault = on_node(SIMVERBS_FAULT_LID, "h1");
    fault.with.value = 0x77;
    inject(fault);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_LID_CHANGE});
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    ibv_port_attr attr{};
    ASSERT_EQ(ibv_query_port(b->context, 1, &attr), 0);
    EXPECT_EQ(attr.lid, 0x77);
}

TEST_F(FabricFault, PkeyChangesUnderTraffic) {
    connect({.timeout = 10, .retries = 1});
    simverbs_fault fault = on_node(SIMVERBS_FAULT_PKEY, "h1");
    fault.with.value = 0x8001;
    inject(fault);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_PKEY_CHANGE});
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(discarded("P_Key mismatch"), 2U);
}

TEST_F(FabricFault, ManagersChangeAndAskToReregister) {
    connect();
    simverbs_fault fault = on_node(SIMVERBS_FAULT_SM_LID, "h0");
    fault.with.value = 2;
    inject(fault);
    inject(on_node(SIMVERBS_FAULT_REREGISTER, "h0"));
    EXPECT_EQ(a->events(), (std::vector{IBV_EVENT_SM_CHANGE, IBV_EVENT_CLIENT_REREGISTER}));
}

// ---- what sets them off

TEST_F(FabricFault, HappensWhenAVerbIsCalled) {
    connect();
    simverbs_fault fault = on_link(SIMVERBS_FAULT_LINK_DOWN, "h0-s0");
    fault.on = SIMVERBS_ON_CALL;
    fault.match.node = "h0";
    fault.match.call = "ibv_query_qp";
    fault.nth = 2;
    const std::uint32_t id = inject(fault);
    a->query();
    EXPECT_EQ(fired(id), 0U);
    a->query();
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(port_state(*a), IBV_PORT_DOWN);
}

TEST_F(FabricFault, HappensAWhileAfterAnotherAndAfterItsOwnDelay) {
    connect();
    const std::uint32_t first = inject(on_request(SIMVERBS_FAULT_MARK, 1));
    simverbs_fault fault = on_link(SIMVERBS_FAULT_LINK_DOWN, "h0-s0");
    fault.after = first;
    fault.after_delay_ps = 5 * kMillisecond;
    fault.delay_ps = 2 * kMillisecond;
    const std::uint32_t second = inject(fault);
    pass(10);
    EXPECT_EQ(fired(second), 0U);
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    pass(4);
    EXPECT_EQ(fired(second), 0U);
    pass(2);
    EXPECT_EQ(fired(second), 1U);
    EXPECT_EQ(port_state(*a), IBV_PORT_ACTIVE) << "not yet";
    pass(2);
    EXPECT_EQ(port_state(*a), IBV_PORT_DOWN);
}

TEST_F(FabricFault, TakenBackBeforeItsTimeDoesNotHappen) {
    connect();
    simverbs_fault fault = on_link(SIMVERBS_FAULT_LINK_DOWN, "h0-s0");
    fault.from_ps = (now_us() + 1'000) * kMicrosecond;
    const std::uint32_t id = inject(fault);
    ASSERT_EQ(simverbs_clear_fault(id), 0);
    pass(10);
    EXPECT_EQ(port_state(*a), IBV_PORT_ACTIVE);
    EXPECT_TRUE(firings.empty());
}

// ---- what is refused

TEST_F(FabricFault, ThatMeansNothingIsRefusedByName) {
    connect();
    expect_refused(fault_of(SIMVERBS_FAULT_NONE), EINVAL, "action");
    expect_refused(fault_of(static_cast<simverbs_fault_action>(99)), EINVAL, "action");
    EXPECT_EQ(simverbs_inject(nullptr, nullptr), EINVAL);
    simverbs_fault fault{};
    fault.action = SIMVERBS_FAULT_DROP;
    expect_refused(fault, EINVAL, "simverbs_fault_init");

    EXPECT_EQ(simverbs_clear_fault(4711), ENOENT);
    expect_works();
}

TEST_F(FabricFault, OfPacketsThatThereAreNotIsRefused) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.match.from = "h9";
    expect_refused(fault, ENOENT, "match.from");
    fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.match.to = "h9";
    expect_refused(fault, ENOENT, "h0 to h1");
    fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.match.link = "h0-h1";
    expect_refused(fault, ENOENT, "h0-s0");
    fault.match.link = "h0-s0";
    fault.match.transmitter = "h1";
    expect_refused(fault, ENOENT, "match.transmitter");
    fault.match.link = nullptr;
    expect_refused(fault, EINVAL, "match.link");
    fault = on_request(SIMVERBS_FAULT_DROP, (1U << 23) + 1);
    expect_refused(fault, EINVAL, "match.psn");
    fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.match.opcode = "SENT";
    expect_refused(fault, EINVAL, "SEND_FIRST");
    fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.match.direction = static_cast<simverbs_direction>(3);
    expect_refused(fault, EINVAL, "match.direction");
    expect_works();
}

TEST_F(FabricFault, AtTimesThatThereAreNotIsRefused) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.chance = 3;
    fault.chance_of = 2;
    expect_refused(fault, EINVAL, "chance_of");
    fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.after = 4711;
    expect_refused(fault, ENOENT, "after");
    fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.from_ps = 5;
    fault.until_ps = 5;
    expect_refused(fault, EINVAL, "until_ps");
    fault.from_ps = -1;
    expect_refused(fault, EINVAL, "from_ps");
    fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.on = SIMVERBS_ON_TIME;
    expect_refused(fault, EINVAL, "leave on 0");
    fault.on = SIMVERBS_ON_DEFAULT;
    fault.delay_ps = 1;
    expect_refused(fault, EINVAL, "leave delay_ps 0");
    expect_works();
}

TEST_F(FabricFault, WithValuesThatMeanNothingIsRefused) {
    connect();
    expect_refused(on_request(SIMVERBS_FAULT_DELAY, 1), EINVAL, "with.duration_ps");
    expect_refused(on_request(SIMVERBS_FAULT_REWRITE, 1), EINVAL, "with.field");
    simverbs_fault fault = on_request(SIMVERBS_FAULT_REWRITE, 1);
    fault.with.field = SIMVERBS_HEADER_PKEY;
    fault.with.value = 0x10000;
    expect_refused(fault, EINVAL, "with.value");
    fault = on_request(SIMVERBS_FAULT_NAK, 1);
    fault.with.value = 4;
    expect_refused(fault, EINVAL, "simverbs_nak");
    fault = on_request(SIMVERBS_FAULT_RNR_NAK, 1);
    fault.with.value = 32;
    expect_refused(fault, EINVAL, "0 to 31");

    expect_works();
}

TEST_F(FabricFault, OfLinksAndNodesThatThereAreNotIsRefused) {
    connect();
    expect_refused(fault_of(SIMVERBS_FAULT_LINK_DOWN), ENOENT, "target.link");
    simverbs_fault fault = on_link(SIMVERBS_FAULT_LINK_DOWN, "h0-s0");
    fault.match.psn = 3;
    expect_refused(fault, EINVAL, "SIMVERBS_ON_PACKET");
    expect_refused(on_link(SIMVERBS_FAULT_LINK_FLAP, "h0-s0"), EINVAL, "with.duration_ps");
    fault = on_link(SIMVERBS_FAULT_LINK_RATE, "h0-s0");
    expect_refused(fault, EINVAL, "with.width is missing");
    fault.with.width = 3;
    fault.with.speed = 1;
    expect_refused(fault, EINVAL, "widths");
    expect_refused(on_link(SIMVERBS_FAULT_PAUSE, "h0-s0"), ENOENT, "target.node");
    expect_refused(on_node(SIMVERBS_FAULT_SWITCH_DEATH, "h0"), ENOENT, "HOST_KILL");
    expect_refused(on_node(SIMVERBS_FAULT_HOST_KILL, "s0"), ENOENT, "h0 to h1");
    expect_refused(on_node(SIMVERBS_FAULT_LID, "h0"), EINVAL, "0xbfff");
    fault = on_node(SIMVERBS_FAULT_PORT_ERROR, "h0");
    fault.target.port = 2;
    expect_refused(fault, ENOENT, "target.port");
    fault = fault_of(SIMVERBS_FAULT_RELEASE);
    fault.target.fault = 4711;
    expect_refused(fault, ENOENT, "target.fault");
    EXPECT_TRUE(firings.empty());
    expect_works();
}

TEST_F(FabricFault, WithMembersThatItsActionDoesNotReadIsRefused) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.with.duration_ps = kMillisecond;
    expect_refused(fault, EINVAL, "drop does not read with.duration_ps");
    fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.match.call = "ibv_modify_qp";
    expect_refused(fault, EINVAL, "drop does not read match.call");
    fault = on_link(SIMVERBS_FAULT_LINK_UP, "h0-s0");
    fault.target.node = "h0";
    expect_refused(fault, EINVAL, "link_up does not read target.node");
    fault = on_node(SIMVERBS_FAULT_HOST_KILL, "h0");
    fault.target.object = 1;
    expect_refused(fault, EINVAL, "host_kill does not read target.object");
    expect_works();
}

TEST_F(FabricFault, OfManagementIsNotForEthernet) {
    ASSERT_EQ(simverbs_restart(), 0);
    ASSERT_EQ(simverbs_set_topology("eth-pair"), 0);
    simverbs_fault fault = on_node(SIMVERBS_FAULT_PKEY, "h0");
    fault.with.value = 0x8001;
    expect_refused(fault, EOPNOTSUPP, "Ethernet");
    expect_refused(fault_of(SIMVERBS_FAULT_SM_DEATH), EOPNOTSUPP, "all ports are Ethernet ports");
}

TEST_F(FabricFault, HasANameForEachAction) {
    EXPECT_STREQ(simverbs_fault_action_str(SIMVERBS_FAULT_MARK), "mark");
    EXPECT_STREQ(simverbs_fault_action_str(SIMVERBS_FAULT_LINK_FLAP), "link_flap");
    EXPECT_STREQ(simverbs_fault_action_str(SIMVERBS_FAULT_CALL), "call");
    EXPECT_EQ(simverbs_fault_action_str(SIMVERBS_FAULT_NONE), nullptr);
}

}  // namespace
}  // namespace verbs_test
