// Raw packets and flow steering through verbs.h: what steers, what is refused, what arrives.
#include <set>
#include <utility>

#include <arpa/inet.h>

#include "raw_packets.hpp"

namespace verbs_test {
namespace {

TEST_F(RawPackets, AFrameArrivesAsItWasSent) {
    write_datagram();
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    ASSERT_EQ(post_receive(receiver, *b, 9), 0);
    ASSERT_EQ(post_send(), 0);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_EQ(wc.byte_len, kFrameBytes);
    EXPECT_EQ(wc.qp_num, receiver->qp_num);
    EXPECT_EQ(wc.wc_flags & IBV_WC_IP_CSUM_OK, 0U);  // there is none in the header
    EXPECT_EQ(std::memcmp(b->at(kInbox), a->at(), kFrameBytes), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(RawPackets, TheDeviceWritesAndChecksChecksums) {
    write_datagram();
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    ASSERT_EQ(post_receive(receiver, *b, 9), 0);
    ASSERT_EQ(post_send(IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM), 0);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_NE(wc.wc_flags & IBV_WC_IP_CSUM_OK, 0U);
    EXPECT_NE(b->at(kInbox)[24] | b->at(kInbox)[25], 0);
    EXPECT_EQ(a->at()[24] | a->at()[25], 0);  // the sender's memory is its own
}

TEST_F(RawPackets, EachSpecificationChooses) {
    write_datagram();
    EXPECT_TRUE(arrives_by(eth_to_b()));
    ibv_flow_spec_eth eth = eth_to_b();
    eth.val.ether_type = htons(0x86DD);
    EXPECT_TRUE(arrives_by(eth));  // not selected
    eth.mask.ether_type = 0xFFFF;
    EXPECT_FALSE(arrives_by(eth));

    auto ipv4 = spec_of<ibv_flow_spec_ipv4>(IBV_FLOW_SPEC_IPV4);
    ipv4.val.dst_ip = inet_addr("127.77.0.1");
    ipv4.mask.dst_ip = 0xFFFFFFFF;
    EXPECT_TRUE(arrives_by_rule(Rule(ipv4)));
    ipv4.val.src_ip = inet_addr("127.77.0.9");
    ipv4.mask.src_ip = inet_addr("255.255.255.0");
    EXPECT_TRUE(arrives_by_rule(Rule(ipv4)));
    ipv4.mask.src_ip = 0xFFFFFFFF;
    EXPECT_FALSE(arrives_by_rule(Rule(ipv4)));

    auto extended = spec_of<ibv_flow_spec_ipv4_ext>(IBV_FLOW_SPEC_IPV4_EXT);
    extended.val.proto = 17;
    extended.val.ttl = 64;
    extended.mask.proto = extended.mask.ttl = extended.mask.tos = 0xFF;
    EXPECT_TRUE(arrives_by_rule(Rule(extended)));
    extended.val.ttl = 63;
    EXPECT_FALSE(arrives_by_rule(Rule(extended)));

    auto udp = spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_UDP);
    udp.val.dst_port = htons(2000);
    udp.mask.dst_port = 0xFFFF;
    EXPECT_TRUE(arrives_by_rule(Rule(eth_to_b(), udp)));
    udp.val.src_port = htons(1001);
    udp.mask.src_port = 0xFFFF;
    EXPECT_FALSE(arrives_by_rule(Rule(udp)));
    EXPECT_FALSE(arrives_by_rule(Rule(spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_TCP))));
    EXPECT_FALSE(arrives_by_rule(Rule(spec_of<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6))));
    EXPECT_FALSE(arrives_by_rule(
        Rule(eth_to_b(), spec_of<ibv_flow_spec_action_drop>(IBV_FLOW_SPEC_ACTION_DROP))));
}

TEST_F(RawPackets, TypesOfRules) {
    write_datagram();
    EXPECT_FALSE(arrives());
    Rule<> rule;
    rule.attr.type = IBV_FLOW_ATTR_SNIFFER;
    EXPECT_TRUE(arrives_by_rule(rule));
    rule.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
    EXPECT_TRUE(arrives_by_rule(rule));
    rule.attr.type = IBV_FLOW_ATTR_MC_DEFAULT;
    EXPECT_FALSE(arrives_by_rule(rule));
    std::fill_n(a->at(), 6, 0xFF);
    EXPECT_TRUE(arrives_by_rule(rule));
}

// Both ends on one device: what goes to a group comes to the device's own rules, too (mlx5).
TEST_F(RawPackets, AGroupsFrameComesToTheRulesOfItsOwnDevice) {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = a->cq;
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RAW_PACKET;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.pd = a->pd;
    init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    ibv_qp* silent = ibv_create_qp_ex(a->context, &init);
    ASSERT_NE(silent, nullptr) << std::strerror(errno);
    start(silent);
    ibv_qp* own = make(*a);
    ASSERT_NE(own, nullptr);
    start(own);
    auto eth = spec_of<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
    const std::uint8_t group[] = {0x01, 0x00, 0x5E, 0x01, 0x02, 0x03};
    std::copy(std::begin(group), std::end(group), eth.val.dst_mac);
    std::fill_n(eth.mask.dst_mac, 6, 0xFF);
    Rule to_own(eth);
    ibv_flow* flow = ibv_create_flow(own, &to_own.attr);
    ASSERT_NE(flow, nullptr);
    ASSERT_EQ(steer(to_own), 0);
    write_datagram();
    std::copy(std::begin(group), std::end(group), a->at());

    ASSERT_EQ(post_receive(own, *a, 5), 0);
    ASSERT_EQ(post_receive(receiver, *b, 9), 0);
    ASSERT_EQ(post_send(), 0);
    std::set<std::uint64_t> ids{a->wait().wr_id, a->wait().wr_id};
    EXPECT_EQ(ids, std::set<std::uint64_t>({1, 5}));
    EXPECT_EQ(std::memcmp(a->at(kInbox), a->at(0), kFrameBytes), 0);
    EXPECT_EQ(b->wait().wr_id, 9U) << "and it leaves";

    std::swap(sender, silent);
    ASSERT_EQ(post_receive(own, *a, 6), 0);
    ASSERT_EQ(post_receive(receiver, *b, 9), 0);
    ASSERT_EQ(post_send(), 0);
    EXPECT_EQ(a->wait().wr_id, 1U);
    EXPECT_EQ(b->wait().wr_id, 9U);
    EXPECT_TRUE(a->drain().empty()) << "BLOCK_SELF_MCAST_LB";
    EXPECT_EQ(ibv_destroy_flow(flow), 0);
    EXPECT_EQ(ibv_destroy_qp(own), 0);
    EXPECT_EQ(ibv_destroy_qp(silent), 0);
}

TEST_F(RawPackets, RulesThatAreRefused) {
    EXPECT_EQ(steer(Rule<>()), EINVAL);  // a normal rule without a specification
    const auto answer = [this](auto&& change) {
        Rule rule(eth_to_b());
        change(rule.attr);
        return steer(rule);
    };
    EXPECT_EQ(answer([](ibv_flow_attr& attr) { attr.comp_mask = 1; }), EINVAL);
    EXPECT_EQ(answer([](ibv_flow_attr& attr) { attr.port = 2; }), EINVAL);
    EXPECT_EQ(answer([](ibv_flow_attr& attr) { attr.flags = 1; }), EINVAL);
    EXPECT_EQ(answer([](ibv_flow_attr& attr) {
                  attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
                  attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
              }),
              EINVAL);
    EXPECT_EQ(answer([](ibv_flow_attr& attr) { attr.type = static_cast<ibv_flow_attr_type>(4); }),
              EINVAL);
    ibv_flow_spec_eth eth = eth_to_b();
    eth.size = 8;
    EXPECT_EQ(steer(Rule(eth)), EINVAL);
    EXPECT_EQ(steer(Rule(spec_of<ibv_flow_spec_ipv4>(IBV_FLOW_SPEC_IPV4),
                         spec_of<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6))),
              EINVAL);
    Rule rule(eth_to_b());
    EXPECT_EQ(ibv_create_flow(b->qp, &rule.attr), nullptr);  // RC
    EXPECT_EQ(errno, EINVAL);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = b->cq;
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_UD;
    ibv_qp* datagrams = ibv_create_qp(b->pd, &init);
    ASSERT_NE(datagrams, nullptr);
    EXPECT_EQ(ibv_create_flow(datagrams, &rule.attr), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(ibv_destroy_qp(datagrams), 0);
}

TEST_F(RawPackets, AQueuePairThatIsSteeredToStays) {
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    EXPECT_EQ(ibv_destroy_qp(receiver), EBUSY);
    expect_reason("is used by 1 object: flow rule ");
    write_datagram();
    EXPECT_TRUE(arrives());
}

TEST_F(RawPackets, SegmentationNeedsRoomForAHeader) {
    write_datagram();
    EXPECT_EQ(post_send(IBV_SEND_SIGNALED, IBV_WR_TSO), EINVAL);
    EXPECT_EQ(post_send(), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(RawPackets, NothingIsPostedBeforeItsTime) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
    EXPECT_EQ(post_send(), EINVAL);
    EXPECT_EQ(post_receive(sender, *a, 1), EINVAL);
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE), EINVAL);  // without a port
    attr.port_num = 1;
    EXPECT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY), EINVAL);
    start(sender);
    write_datagram();
    EXPECT_EQ(post_send(), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(RawPackets, ADeviceSaysThatItSteers) {
    ibv_device_attr attr{};
    ASSERT_EQ(ibv_query_device(a->context, &attr), 0);
    EXPECT_NE(attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, 0U);
    EXPECT_NE(attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM, 0U);
    EXPECT_GT(attr.max_raw_ethy_qp, 0);
}

}  // namespace
}  // namespace verbs_test
