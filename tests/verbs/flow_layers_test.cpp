// Flow rules by VLAN tag, by what tunnels carry, by ESP and MPLS; rules for what is sent.
#include <initializer_list>

#include <arpa/inet.h>

#include "raw_packets.hpp"

namespace verbs_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

ibv_flow_spec_type within(ibv_flow_spec_type type) {
    return static_cast<ibv_flow_spec_type>(type | IBV_FLOW_SPEC_INNER);
}

class FlowLayers : public RawPackets {
  protected:
    // A frame from `a` to `b`: the type of Ethernet and what follows, one behind the other.
    void write_frame(std::uint16_t ether_type, std::initializer_list<Bytes> parts) {
        std::uint8_t* frame = a->at();
        std::memset(frame, 0, kFrameBytes);
        mac_of(*b, frame);
        mac_of(*a, frame + 6);
        frame[12] = static_cast<std::uint8_t>(ether_type >> 8U);
        frame[13] = static_cast<std::uint8_t>(ether_type & 0xFFU);
        std::uint8_t* to = frame + 14;
        for (const Bytes& part : parts) {
            to = std::copy(part.begin(), part.end(), to);
        }
        ASSERT_LE(to, frame + kFrameBytes);
    }
    // To 10.0.0.`last`.
    static Bytes ipv4(std::uint8_t protocol, std::uint8_t length, std::uint8_t last) {
        return {0x45, 0, 0, length, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 9, 10, 0, 0, last};
    }
    static Bytes udp(std::uint16_t port) {
        return {0,
                7,
                static_cast<std::uint8_t>(port >> 8U),
                static_cast<std::uint8_t>(port & 0xFFU),
                0,
                0,
                0,
                0};
    }
    static Bytes macs(std::uint8_t last) { return {2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 0xEE}; }
    void write_vxlan() {
        constexpr std::uint16_t kVxlanPort = 4789;
        write_frame(0x0800, {ipv4(17, 86, 1),
                             udp(kVxlanPort),
                             {0x08, 0, 0, 0, 0, 0x12, 0x34, 0},
                             macs(3),
                             {0x08, 0x00},
                             ipv4(17, 28, 2),
                             udp(2000)});
    }
    static ibv_flow_spec_tunnel vni(std::uint32_t number) {
        auto spec = spec_of<ibv_flow_spec_tunnel>(IBV_FLOW_SPEC_VXLAN_TUNNEL);
        spec.val.tunnel_id = htonl(number);
        spec.mask.tunnel_id = htonl(0xFFFFFF);
        return spec;
    }
    static ibv_flow_spec_ipv4 destination(ibv_flow_spec_type type, const char* address) {
        auto spec = spec_of<ibv_flow_spec_ipv4>(type);
        spec.val.dst_ip = inet_addr(address);
        spec.mask.dst_ip = ~0U;
        return spec;
    }
    static ibv_flow_spec_mpls label(ibv_flow_spec_type type, std::uint32_t number) {
        constexpr unsigned kLabelShift = 12;
        auto spec = spec_of<ibv_flow_spec_mpls>(type);
        spec.val.label = htonl(number << kLabelShift);
        spec.mask.label = htonl(0xFFFFFU << kLabelShift);
        return spec;
    }
};

TEST_F(FlowLayers, AVlanTagIsChosenByItsBits) {
    const auto vlan = [this](std::uint16_t value, std::uint16_t mask) {
        ibv_flow_spec_eth eth = eth_to_b();
        eth.val.vlan_tag = htons(value);
        eth.mask.vlan_tag = htons(mask);
        return eth;
    };
    write_tagged_datagram(0x6005);
    EXPECT_TRUE(arrives_by(eth_to_b())) << "a rule without a VLAN takes both";
    EXPECT_TRUE(arrives_by(vlan(5, 0x0FFF)));
    EXPECT_FALSE(arrives_by(vlan(6, 0x0FFF)));
    EXPECT_TRUE(arrives_by(vlan(0x6000, 0xE000)));
    EXPECT_FALSE(arrives_by(vlan(0x2000, 0xE000)));
    ibv_flow_spec_eth typed = vlan(5, 0x0FFF);
    typed.val.ether_type = htons(0x0800);  // behind the tag
    typed.mask.ether_type = 0xFFFF;
    EXPECT_TRUE(arrives_by_rule(Rule(typed, destination(IBV_FLOW_SPEC_IPV4, "127.77.0.1"))));
    write_datagram();
    EXPECT_FALSE(arrives_by(vlan(0, 0x0FFF))) << "no tag is not VLAN 0";
}

TEST_F(FlowLayers, AVxlanRuleLooksAtTheNetworkAndIntoTheTunnel) {
    write_vxlan();
    EXPECT_TRUE(arrives_by_rule(Rule(eth_to_b(), vni(0x1234))));
    EXPECT_FALSE(arrives_by_rule(Rule(eth_to_b(), vni(0x1235))));
    auto inner_eth = spec_of<ibv_flow_spec_eth>(within(IBV_FLOW_SPEC_ETH));
    inner_eth.val.dst_mac[0] = 2;
    inner_eth.val.dst_mac[5] = 3;
    std::fill_n(inner_eth.mask.dst_mac, 6, 0xFF);
    EXPECT_TRUE(arrives_by_rule(Rule(vni(0x1234), inner_eth)));
    inner_eth.val.dst_mac[5] = 4;
    EXPECT_FALSE(arrives_by_rule(Rule(vni(0x1234), inner_eth)));
    EXPECT_TRUE(arrives_by_rule(Rule(destination(within(IBV_FLOW_SPEC_IPV4), "10.0.0.2"))));
    EXPECT_FALSE(arrives_by_rule(Rule(destination(IBV_FLOW_SPEC_IPV4, "10.0.0.2"))));
    EXPECT_TRUE(arrives_by_rule(Rule(destination(IBV_FLOW_SPEC_IPV4, "10.0.0.1"),
                                     destination(within(IBV_FLOW_SPEC_IPV4), "10.0.0.2"))));
    auto port = spec_of<ibv_flow_spec_tcp_udp>(within(IBV_FLOW_SPEC_UDP));
    port.val.dst_port = htons(2000);
    port.mask.dst_port = 0xFFFF;
    EXPECT_TRUE(arrives_by_rule(Rule(port)));
    write_datagram();  // to the same port, in no tunnel
    EXPECT_FALSE(arrives_by_rule(Rule(port)));
}

TEST_F(FlowLayers, AGreRuleLooksAtFlagsProtocolAndKey) {
    write_frame(0x0800, {ipv4(47, 48, 1), {0x20, 0, 0x08, 0, 0, 0, 0, 7}, ipv4(1, 20, 2)});
    auto gre = spec_of<ibv_flow_spec_gre>(IBV_FLOW_SPEC_GRE);
    EXPECT_TRUE(arrives_by_rule(Rule(gre)));
    gre.val.protocol = htons(0x0800);
    gre.mask.protocol = 0xFFFF;
    gre.val.key = htonl(7);
    gre.mask.key = ~0U;
    EXPECT_TRUE(arrives_by_rule(
        Rule(eth_to_b(), gre, destination(within(IBV_FLOW_SPEC_IPV4), "10.0.0.2"))));
    gre.val.key = htonl(8);
    EXPECT_FALSE(arrives_by_rule(Rule(gre)));
    gre.mask.key = 0;
    gre.mask.c_ks_res0_ver = 0xFFFF;
    EXPECT_FALSE(arrives_by_rule(Rule(gre)));
    gre.val.c_ks_res0_ver = htons(0x2000);
    EXPECT_TRUE(arrives_by_rule(Rule(gre)));
    write_frame(0x0800, {ipv4(47, 44, 1), {0, 0, 0x08, 0}, ipv4(1, 20, 2)});
    gre = spec_of<ibv_flow_spec_gre>(IBV_FLOW_SPEC_GRE);
    gre.mask.key = ~0U;
    EXPECT_FALSE(arrives_by_rule(Rule(gre))) << "no key is not key 0";
}

TEST_F(FlowLayers, AnEspRuleLooksAtSpiAndSequence) {
    write_frame(0x0800, {ipv4(50, 28, 1), {0, 0, 0x10, 1, 0, 0, 0, 5}});
    auto esp = spec_of<ibv_flow_spec_esp>(IBV_FLOW_SPEC_ESP);
    esp.val.spi = htonl(0x1001);
    esp.mask.spi = ~0U;
    EXPECT_TRUE(arrives_by_rule(Rule(destination(IBV_FLOW_SPEC_IPV4, "10.0.0.1"), esp)));
    esp.val.seq = htonl(5);
    esp.mask.seq = ~0U;
    EXPECT_TRUE(arrives_by_rule(Rule(esp)));
    esp.val.spi = htonl(0x1002);
    EXPECT_FALSE(arrives_by_rule(Rule(esp)));
}

TEST_F(FlowLayers, ALabelStandsWhereItsSpecificationDoes) {
    constexpr std::uint16_t kMplsPort = 6635;
    const auto plain = label(IBV_FLOW_SPEC_MPLS, 100);
    const auto udp_spec = spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_UDP);
    const auto gre = spec_of<ibv_flow_spec_gre>(IBV_FLOW_SPEC_GRE);
    const Bytes stack = {0x00, 0x06, 0x41, 0x40};  // label 100, bottom of the stack
    write_frame(0x8847, {stack});
    EXPECT_TRUE(arrives_by_rule(Rule(eth_to_b(), plain)));
    EXPECT_FALSE(arrives_by_rule(Rule(eth_to_b(), label(IBV_FLOW_SPEC_MPLS, 101))));
    EXPECT_FALSE(arrives_by_rule(Rule(eth_to_b(), udp_spec, plain)));
    write_frame(0x0800, {ipv4(17, 32, 1), udp(kMplsPort), stack});
    EXPECT_FALSE(arrives_by_rule(Rule(eth_to_b(), plain)));
    EXPECT_TRUE(arrives_by_rule(Rule(eth_to_b(), udp_spec, plain)));
    write_frame(0x0800, {ipv4(47, 28, 1), {0, 0, 0x88, 0x47}, stack});
    EXPECT_TRUE(arrives_by_rule(Rule(gre, plain)));
    EXPECT_FALSE(arrives_by_rule(Rule(udp_spec, plain)));
    write_frame(0x0800, {ipv4(47, 42, 1), {0, 0, 0x65, 0x58}, macs(3), {0x88, 0x47}, stack});
    EXPECT_TRUE(arrives_by_rule(Rule(gre, label(within(IBV_FLOW_SPEC_MPLS), 100))));
    EXPECT_FALSE(arrives_by_rule(Rule(gre, plain)));
}

TEST_F(FlowLayers, TheFlagsOfIpv4AreThoseOfLinux) {
    constexpr std::uint8_t kDontFragment = 2;
    auto spec = spec_of<ibv_flow_spec_ipv4_ext>(IBV_FLOW_SPEC_IPV4_EXT);
    spec.val.flags = kDontFragment;
    spec.mask.flags = kDontFragment;
    write_datagram();
    EXPECT_FALSE(arrives_by_rule(Rule(spec)));
    a->at()[20] = 0x40;
    EXPECT_TRUE(arrives_by_rule(Rule(spec)));
}

TEST_F(FlowLayers, ListsThatMakeNoSenseAreRefused) {
    const auto ip = spec_of<ibv_flow_spec_ipv4>(IBV_FLOW_SPEC_IPV4);
    const auto tcp = spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_TCP);
    const auto gre = spec_of<ibv_flow_spec_gre>(IBV_FLOW_SPEC_GRE);
    const auto plain = label(IBV_FLOW_SPEC_MPLS, 1);
    EXPECT_EQ(steer(Rule(vni(1U << 24U))), EINVAL) << "a network number has 24 bits";
    EXPECT_EQ(steer(Rule(vni(1), tcp)), EINVAL);
    EXPECT_EQ(steer(Rule(vni(1), gre)), EINVAL);
    EXPECT_EQ(steer(Rule(ip, plain)), EINVAL);
    EXPECT_EQ(steer(Rule(tcp, plain)), EINVAL);
    EXPECT_EQ(steer(Rule(spec_of<ibv_flow_spec_gre>(within(IBV_FLOW_SPEC_GRE)))), EINVAL);
    EXPECT_EQ(steer(Rule(spec_of<ibv_flow_spec_tunnel>(within(IBV_FLOW_SPEC_VXLAN_TUNNEL)))),
              EINVAL);
    EXPECT_EQ(steer(Rule(spec_of<ibv_flow_spec_ipv4>(within(IBV_FLOW_SPEC_IPV4)),
                         spec_of<ibv_flow_spec_ipv6>(within(IBV_FLOW_SPEC_IPV6)))),
              EINVAL);
    auto ipv6 = spec_of<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6);
    ipv6.val.flow_label = htonl(1U << 20U);
    EXPECT_EQ(steer(Rule(ipv6)), EINVAL) << "a flow label has 20 bits";
    EXPECT_EQ(steer(Rule(spec_of<ibv_flow_spec_eth>(static_cast<ibv_flow_spec_type>(0x33)))),
              EINVAL);
    // Layers behind labels are not looked at, and IPsec is not modelled.
    EXPECT_EQ(steer(Rule(gre, plain, spec_of<ibv_flow_spec_ipv4>(within(IBV_FLOW_SPEC_IPV4)))),
              EOPNOTSUPP);
    EXPECT_EQ(
        steer(Rule(eth_to_b(), spec_of<ibv_flow_spec_action_handle>(IBV_FLOW_SPEC_ACTION_HANDLE))),
        EOPNOTSUPP);
    ibv_flow_action_esp_attr esp{};
    EXPECT_EQ(ibv_create_flow_action_esp(a->context, &esp), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

// ---- what is sent (IBV_FLOW_ATTR_FLAGS_EGRESS)

class EgressRules : public FlowLayers {
  protected:
    // A rule of the sender's device for what goes to `b`.
    template <class... Specs>
    int add_egress(const Specs&... specs) {
        Rule rule(eth_to_b(), specs...);
        rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
        std::swap(sender, receiver);
        const int error = steer(rule);
        std::swap(sender, receiver);
        return error;
    }
};

TEST_F(EgressRules, DropAFrameBeforeItLeaves) {
    write_datagram();
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    ASSERT_EQ(add_egress(), 0);
    EXPECT_TRUE(arrives()) << "a rule without an action lets it pass";
    const auto drop = spec_of<ibv_flow_spec_action_drop>(IBV_FLOW_SPEC_ACTION_DROP);
    auto tagged_drop = spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_TCP);
    ASSERT_EQ(add_egress(tagged_drop, drop), 0);
    EXPECT_TRUE(arrives()) << "it is not TCP";
    ASSERT_EQ(ibv_destroy_flow(flows[1]), 0);
    flows.erase(flows.begin() + 1);
    ASSERT_EQ(add_egress(drop), 0);
    EXPECT_FALSE(arrives()) << "and the send completes";
    ASSERT_EQ(ibv_destroy_flow(flows.back()), 0);
    flows.pop_back();
    EXPECT_TRUE(arrives());
}

TEST_F(EgressRules, CountWhatIsSentAndNothingThatArrives) {
    ibv_counters_init_attr init{};
    ibv_counters* counters = ibv_create_counters(a->context, &init);
    ASSERT_NE(counters, nullptr);
    ibv_counter_attach_attr packets{IBV_COUNTER_PACKETS, 0, 0};
    ASSERT_EQ(ibv_attach_counters_point_flow(counters, &packets, nullptr), 0);
    auto count = spec_of<ibv_flow_spec_counter_action>(IBV_FLOW_SPEC_ACTION_COUNT);
    count.counters = counters;
    ASSERT_EQ(add_egress(count), 0);
    write_datagram();
    ASSERT_EQ(post_send(), 0);
    ASSERT_EQ(post_send(), 0);
    pass(1);
    std::uint64_t value = 0;
    ASSERT_EQ(ibv_read_counters(counters, &value, 1, 0), 0);
    EXPECT_EQ(value, 2U);
    EXPECT_EQ(ibv_destroy_qp(sender), EBUSY);
    ASSERT_EQ(ibv_destroy_flow(flows.back()), 0);
    flows.clear();
    EXPECT_EQ(ibv_destroy_counters(counters), 0);
}

TEST_F(EgressRules, SteerNothing) {
    write_datagram();
    Rule rule(eth_to_b());
    rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
    ASSERT_EQ(steer(rule), 0);  // at the receiver
    EXPECT_FALSE(arrives());
}

TEST_F(EgressRules, AreNormalAndCarryNoTag) {
    Rule rule(eth_to_b());
    rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
    rule.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
    EXPECT_EQ(steer(rule), EINVAL);
    rule.attr.type = IBV_FLOW_ATTR_SNIFFER;
    EXPECT_EQ(steer(rule), EINVAL);
    auto tag = spec_of<ibv_flow_spec_action_tag>(IBV_FLOW_SPEC_ACTION_TAG);
    tag.tag_id = 1;
    EXPECT_EQ(add_egress(tag), EINVAL);
}

}  // namespace
}  // namespace verbs_test
