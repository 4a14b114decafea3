// Counters of flow rules.
#include "raw_packets.hpp"

namespace verbs_test {
namespace {

class FlowCounters : public RawPackets {
  protected:
    void SetUp() override {
        RawPackets::SetUp();
        counters = make();
        ASSERT_NE(counters, nullptr);
        write_datagram();
    }
    void TearDown() override {
        for (ibv_flow* flow : flows) {
            EXPECT_EQ(ibv_destroy_flow(flow), 0);
        }
        flows.clear();
        EXPECT_EQ(ibv_destroy_counters(counters), 0);
        RawPackets::TearDown();
    }
    ibv_counters* make(std::uint32_t comp_mask = 0) {
        ibv_counters_init_attr init{comp_mask};
        return ibv_create_counters(b->context, &init);
    }
    int attach(ibv_counter_description what, std::uint32_t index, ibv_flow* flow = nullptr,
               std::uint32_t comp_mask = 0) {
        ibv_counter_attach_attr attr{what, index, comp_mask};
        return ibv_attach_counters_point_flow(counters, &attr, flow);
    }
    ibv_flow_spec_counter_action counting() {
        auto action = spec_of<ibv_flow_spec_counter_action>(IBV_FLOW_SPEC_ACTION_COUNT);
        action.counters = counters;
        return action;
    }
    std::vector<std::uint64_t> values(std::uint32_t count) {
        std::vector<std::uint64_t> read(count, 99);
        EXPECT_EQ(ibv_read_counters(counters, read.data(), count, 0), 0);
        return read;
    }
    using Values = std::vector<std::uint64_t>;

    ibv_counters* counters = nullptr;
};

TEST_F(FlowCounters, CountWhatTheirRulesMatch) {
    ASSERT_EQ(attach(IBV_COUNTER_PACKETS, 0), 0);
    ASSERT_EQ(attach(IBV_COUNTER_BYTES, 2), 0);
    EXPECT_EQ(values(3), (Values{0, 0, 0}));
    ASSERT_EQ(steer(Rule(eth_to_b(), counting())), 0);
    EXPECT_TRUE(arrives());
    EXPECT_TRUE(arrives());
    EXPECT_EQ(values(3), (Values{2, 0, 2UL * kFrameBytes}));
    std::fill_n(a->at(), 6, 0xFF);  // for another rule, or none
    EXPECT_FALSE(arrives());
    EXPECT_EQ(values(3), (Values{2, 0, 2UL * kFrameBytes}));
}

TEST_F(FlowCounters, CountWhatIsDroppedToo) {
    ASSERT_EQ(attach(IBV_COUNTER_PACKETS, 0), 0);
    ASSERT_EQ(steer(Rule(eth_to_b(), counting(),
                         spec_of<ibv_flow_spec_action_drop>(IBV_FLOW_SPEC_ACTION_DROP))),
              0);
    EXPECT_FALSE(arrives());
    EXPECT_EQ(values(1), (Values{1}));
}

TEST_F(FlowCounters, OfSeveralRulesAddUp) {
    ASSERT_EQ(attach(IBV_COUNTER_PACKETS, 0), 0);
    ASSERT_EQ(attach(IBV_COUNTER_PACKETS, 0), 0);
    auto udp = spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_UDP);
    Rule first(eth_to_b(), counting());
    first.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
    ASSERT_EQ(steer(first), 0);
    ASSERT_EQ(steer(Rule(udp, counting())), 0);
    EXPECT_TRUE(arrives());
    EXPECT_EQ(values(1), (Values{4}));
}

TEST_F(FlowCounters, KeepTheirValuesWhenTheRuleGoes) {
    ASSERT_EQ(attach(IBV_COUNTER_PACKETS, 1), 0);
    EXPECT_TRUE(arrives_by_rule(Rule(eth_to_b(), counting())));
    EXPECT_EQ(values(2), (Values{0, 1}));
    EXPECT_EQ(attach(IBV_COUNTER_BYTES, 0), 0);  // no rule counts any more
}

TEST_F(FlowCounters, AreHeldByTheirRule) {
    ASSERT_EQ(attach(IBV_COUNTER_PACKETS, 0), 0);
    ASSERT_EQ(steer(Rule(eth_to_b(), counting())), 0);
    EXPECT_EQ(ibv_destroy_counters(counters), EBUSY);
    expect_reason("are used by 1 object: flow rule ");
    EXPECT_EQ(attach(IBV_COUNTER_BYTES, 1), EBUSY);
    EXPECT_TRUE(arrives());
    EXPECT_EQ(values(1), (Values{1}));
}

TEST_F(FlowCounters, WhatCannotBeIsRefused) {
    EXPECT_EQ(make(1), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(attach(static_cast<ibv_counter_description>(2), 0), EOPNOTSUPP);
    EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1000), EINVAL);
    EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 0, nullptr, 1), EINVAL);
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 0, flows.back()), EOPNOTSUPP);
    ASSERT_EQ(attach(IBV_COUNTER_PACKETS, 3), 0);
    std::uint64_t value = 0;
    EXPECT_EQ(ibv_read_counters(counters, &value, 1, 0), EINVAL) << "four are needed";
    std::array<std::uint64_t, 4> read{};
    EXPECT_EQ(ibv_read_counters(counters, read.data(), 4, 2), EINVAL);
    EXPECT_EQ(ibv_read_counters(counters, read.data(), 4, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
    EXPECT_EQ(steer(Rule(eth_to_b(), counting(), counting())), EINVAL);
    ibv_flow_spec_counter_action none = counting();
    none.counters = nullptr;
    EXPECT_EQ(steer(Rule(eth_to_b(), none)), EINVAL);
}

}  // namespace
}  // namespace verbs_test
