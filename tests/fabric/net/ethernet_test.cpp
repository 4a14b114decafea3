#include "fabric/net/ethernet.hpp"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/net/ethernet_addresses.hpp"

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::Arrival;
using test::RunningFabric;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr MacAddress kBroadcast{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};
constexpr MacAddress kNobody{{0x66, 0x11, 0x22, 0x33, 0x44, 0x55}};

void send_to(RunningFabric& fabric, std::size_t from, const MacAddress& to, std::uint32_t number,
             FrameCargo* cargo = nullptr) {
    FramePtr frame = fabric.network.frames().make();
    frame->source = fabric.network.host(from).id();
    frame->source_mac = fabric.port_of(from).attributes().mac;
    frame->destination_mac = to;
    frame->vlan = 0;
    frame->payload_bytes = 1000;
    frame->wire_bytes = ethernet_wire_bytes(kEthernetHeaderBytes + frame->payload_bytes);
    frame->cargo = cargo;
    frame->transport_as<std::uint32_t>() = number;
    fabric.port_of(from).send(std::move(frame));
}

struct CountingCargo final : FrameCargo {
    void release() override { ++released; }
    void retain() override { ++retained; }
    int released = 0;
    int retained = 0;
};

TEST(MacAddress, OfAPortIsLocalAndItsOwn) {
    const MacAddress mac = make_mac(NodeId{0}, PortNumber{1});
    EXPECT_THAT(mac.bytes, ElementsAre(0x02, 0, 0, 0, 0x10, 0x01));
    EXPECT_FALSE(mac.is_group());
    EXPECT_NE(mac, make_mac(NodeId{0}, PortNumber{2}));
    EXPECT_NE(mac, make_mac(NodeId{1}, PortNumber{1}));
}

// RFC 4291, appendix A: ff:fe in the middle, the universal bit inverted.
TEST(EthernetGid, LinkLocalHoldsTheMacAddress) {
    const MacAddress mac{{0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE}};
    EXPECT_EQ(to_string(link_local_gid(mac)), "fe80::3656:78ff:fe9a:bcde");
    EXPECT_TRUE(is_link_local(link_local_gid(mac)));
    EXPECT_EQ(mac_of_link_local(link_local_gid(mac)), mac);
}

TEST(EthernetGid, OfHostNHoldsItsIpAddress) {
    EXPECT_EQ(to_string(ipv4_mapped(ipv4_address(NodeId{258}))), "::ffff:7f4d:102");
    EXPECT_TRUE(is_ipv4_mapped(ipv4_mapped(1)));
    EXPECT_FALSE(is_ipv4_mapped(Gid{}));
    EXPECT_FALSE(is_link_local(ipv4_mapped(1)));
}

// RFC 2464 section 7 and RFC 1112 section 6.4, with their examples' shape.
TEST(EthernetGid, GroupsHaveAddressesOfTheirOwn) {
    Gid ipv6;
    ipv6.bytes = {0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78};
    EXPECT_TRUE(is_multicast(ipv6));
    EXPECT_THAT(multicast_mac(ipv6).bytes, ElementsAre(0x33, 0x33, 0x12, 0x34, 0x56, 0x78));
    const Gid ipv4 = ipv4_mapped(0xEF81'0203);  // 239.129.2.3
    EXPECT_TRUE(is_multicast(ipv4));
    EXPECT_THAT(multicast_mac(ipv4).bytes, ElementsAre(0x01, 0x00, 0x5E, 0x01, 0x02, 0x03));
    EXPECT_TRUE(multicast_mac(ipv4).is_group());
    EXPECT_FALSE(is_multicast(ipv4_mapped(ipv4_address(NodeId{0}))));
}

// IEEE 802.3: 8 bytes before the frame, 4 of check sequence, 12 of gap, and 64 at the least.
TEST(EthernetWire, CountsWhatAFrameCosts) {
    EXPECT_EQ(ethernet_wire_bytes(14 + 1500), 1538U);
    EXPECT_EQ(ethernet_wire_bytes(14 + 46), 84U);
    EXPECT_EQ(ethernet_wire_bytes(14 + 1), 84U);
}

TEST(EthernetPort, IsActiveWithItsLinkAndHasNoLid) {
    RunningFabric fabric("eth-pair");
    Port& port = fabric.port_of(0);
    EXPECT_EQ(port.state(), PortState::kActive);
    EXPECT_EQ(port.physical_state(), PhysicalState::kLinkUp);
    EXPECT_EQ(port.attributes().lid, kNoLid);
    EXPECT_EQ(port.attributes().sm_lid, kNoLid);
    EXPECT_EQ(port.attributes().active_mtu, Mtu::k4096);
    EXPECT_TRUE(fabric.hosts[0]->events.empty());
    fabric.network.link(0).set_state(LinkState::kDown);
    EXPECT_EQ(port.state(), PortState::kDown);
    EXPECT_EQ(port.physical_state(), PhysicalState::kPolling);
    fabric.network.link(0).set_state(LinkState::kUp);
    EXPECT_EQ(port.state(), PortState::kActive);
    fabric.run();
    EXPECT_THAT(fabric.hosts[0]->events,
                ElementsAre(PortEvent::kPortError, PortEvent::kPortActive));
}

TEST(EthernetPort, HasFourGids) {
    const RunningFabric fabric("eth-pair");
    const std::vector<GidEntry>& gids = fabric.port_of(1).attributes().gids;
    ASSERT_EQ(gids.size(), 4U);
    for (const std::size_t i : {0U, 1U}) {
        EXPECT_EQ(gids[i].gid, link_local_gid(fabric.port_of(1).attributes().mac));
        EXPECT_EQ(to_string(gids[2 + i].gid), "::ffff:7f4d:1");
    }
    EXPECT_EQ(gids[0].type, GidType::kRoceV1);
    EXPECT_EQ(gids[1].type, GidType::kRoceV2);
    EXPECT_EQ(gids[2].type, GidType::kRoceV1);
    EXPECT_EQ(gids[3].type, GidType::kRoceV2);
    EXPECT_EQ(fabric.network.find_neighbour(gids[3].gid), &fabric.port_of(1));
    EXPECT_EQ(fabric.network.find_neighbour(ipv4_mapped(1)), nullptr);
}

TEST(EthernetPort, HasItsGidsOnceMoreInEachVlanOfItsLink) {
    Topology topology = make_star(3, LinkLayer::kEthernet);
    topology.links[0].vlans = {200};
    topology.links[1].vlans = {100, 200};
    const RunningFabric fabric(std::move(topology));
    const std::vector<GidEntry>& gids = fabric.port_of(1).attributes().gids;
    ASSERT_EQ(gids.size(), 12U);
    for (std::size_t i = 0; i < gids.size(); ++i) {
        EXPECT_EQ(gids[i].vlan, i / 4 * 100) << i;
        EXPECT_EQ(gids[i].type, gids[i % 4].type) << i;
    }
    EXPECT_EQ(gids[4].gid, gids[0].gid) << "the MAC address is the same";
    EXPECT_EQ(to_string(gids[7].gid), "::ffff:7f4e:1");
    EXPECT_EQ(to_string(gids[11].gid), "::ffff:7f4f:1");

    const std::vector<GidEntry>& others = fabric.port_of(0).attributes().gids;
    ASSERT_EQ(others.size(), 8U);
    EXPECT_EQ(to_string(others[7].gid), "::ffff:7f4f:0") << "a VLAN is one subnet on every host";
    EXPECT_EQ(fabric.port_of(2).attributes().gids.size(), 4U);

    EXPECT_EQ(fabric.network.find_neighbour(gids[7].gid, 100), &fabric.port_of(1));
    EXPECT_EQ(fabric.network.find_neighbour(gids[7].gid), nullptr);
    EXPECT_EQ(fabric.network.find_neighbour(gids[7].gid, 200), nullptr);
}

TEST(EthernetPort, ResolvesGidsToMacAddresses) {
    Topology topology = make_star(2, LinkLayer::kEthernet);
    for (LinkSpec& link : topology.links) {
        link.vlans = {100};
    }
    const RunningFabric fabric(std::move(topology));
    const std::vector<GidEntry>& own = fabric.port_of(0).attributes().gids;
    const std::vector<GidEntry>& others = fabric.port_of(1).attributes().gids;
    MacAddress mac;
    const auto resolve = [&](const GidEntry& source, const Gid& target) {
        mac = {};
        return resolve_mac(fabric.network, source, target, mac);
    };
    for (const std::size_t i : {0U, 1U, 2U, 3U, 5U, 7U}) {
        EXPECT_EQ(resolve(own[i], others[i].gid), 0) << i;
        EXPECT_EQ(mac, fabric.port_of(1).attributes().mac) << i;
    }
    EXPECT_EQ(resolve(own[3], others[1].gid), EINVAL) << "of another address family";
    EXPECT_EQ(resolve(own[3], Gid{}), EINVAL);
    EXPECT_EQ(resolve(own[7], others[3].gid), ETIMEDOUT) << "it is not in the VLAN";
    EXPECT_EQ(resolve(own[3], ipv4_mapped(0xE000'0001)), 0);
    EXPECT_EQ(mac, multicast_mac(ipv4_mapped(0xE000'0001)));
    EXPECT_EQ(resolve(own[0], link_local_gid(kNobody)), 0) << "RoCE v1 looks nothing up";
    EXPECT_EQ(mac, kNobody);
    EXPECT_EQ(resolve(own[1], link_local_gid(kNobody)), ETIMEDOUT);
}

TEST(EthernetPort, GetsAnotherAddressInAVlan) {
    Topology topology = make_star(2, LinkLayer::kEthernet);
    for (LinkSpec& link : topology.links) {
        link.vlans = {100};
    }
    RunningFabric fabric(std::move(topology));
    Port& port = fabric.port_of(1);
    constexpr std::uint32_t kNew = 0x0A00'0007;  // 10.0.0.7
    const Gid untagged = port.attributes().gids[3].gid;
    ASSERT_TRUE(set_ipv4_address(fabric.network, port, kNew, 100));
    EXPECT_EQ(port.attributes().gids[3].gid, untagged);
    EXPECT_EQ(port.attributes().gids[7].gid, ipv4_mapped(kNew));
    EXPECT_TRUE(set_ipv4_address(fabric.network, fabric.port_of(0), kNew)) << "another subnet";
    EXPECT_FALSE(set_ipv4_address(fabric.network, fabric.port_of(0), kNew, 100));
    EXPECT_FALSE(set_ipv4_address(fabric.network, port, 0x0A00'0008, 200));
}

TEST(EthernetPort, GetsAnotherAddress) {
    RunningFabric fabric("eth-star:2");
    Port& port = fabric.port_of(1);
    const std::vector<GidEntry> before = port.attributes().gids;
    constexpr std::uint32_t kNew = 0x0A00'0007;  // 10.0.0.7
    ASSERT_TRUE(set_ipv4_address(fabric.network, port, kNew));
    const std::vector<GidEntry>& gids = port.attributes().gids;
    EXPECT_EQ(gids[1].gid, before[1].gid);
    for (const std::size_t index : {2U, 3U}) {
        EXPECT_EQ(gids[index].gid, ipv4_mapped(kNew));
        EXPECT_EQ(gids[index].type, before[index].type);
    }
    EXPECT_EQ(fabric.network.find_neighbour(ipv4_mapped(kNew)), &port);
    EXPECT_EQ(fabric.network.find_neighbour(before[2].gid), nullptr);
    EXPECT_TRUE(set_ipv4_address(fabric.network, port, kNew));  // its own is no other's

    EXPECT_FALSE(set_ipv4_address(fabric.network, fabric.port_of(0), kNew));
    EXPECT_FALSE(set_ipv4_address(fabric.network, port, 0));
    EXPECT_FALSE(set_ipv4_address(fabric.network, port, 0xE000'0001));
    EXPECT_EQ(gids[2].gid, ipv4_mapped(kNew));
}

TEST(EthernetPort, LargerFramesCarryLargerPackets) {
    for (const auto& [bytes, mtu] : {std::pair{1280U, Mtu::k1024}, std::pair{4191U, Mtu::k2048},
                                     std::pair{4192U, Mtu::k4096}, std::pair{9000U, Mtu::k4096}}) {
        Topology topology = make_pair(LinkLayer::kEthernet);
        topology.links[0].ethernet_mtu = bytes;
        const RunningFabric fabric(topology);
        EXPECT_EQ(fabric.port_of(0).attributes().active_mtu, mtu) << bytes;
    }
}

TEST(EthernetPort, DropsWhatTheLinkCannotCarry) {
    RunningFabric fabric("eth-pair");
    FramePtr frame = fabric.network.frames().make();
    frame->payload_bytes = kDefaultEthernetMtu + 1;
    fabric.port_of(0).send(std::move(frame));
    EXPECT_EQ(fabric.port_of(0).counters().discarded(DropReason::kExceedsMtu), 1U);
}

// The header, the data and the check sequence; not the gap.
TEST(EthernetPort, CountsItsBytes) {
    RunningFabric fabric("eth-pair");
    send_to(fabric, 0, fabric.port_of(1).attributes().mac, 1);
    fabric.run();
    EXPECT_EQ(fabric.port_of(0).counters().xmit_data_bytes, 14U + 1000 + 4);
    EXPECT_EQ(fabric.port_of(1).counters().rcv_data_bytes, 14U + 1000 + 4);
}

TEST(EthernetSwitch, ForwardsByMacAddressAndOnlyThere) {
    RunningFabric fabric("eth-star:3");
    send_to(fabric, 0, fabric.port_of(2).attributes().mac, 42);
    fabric.run();
    // 5.12 ns for the first 64 bytes, 500 ns of latency, 100 ns in the switch, 83.04 ns of
    // transmission and 500 ns of latency.
    EXPECT_THAT(fabric.hosts[2]->arrivals, ElementsAre(Arrival{kSimStart + 1'188'160_ps, 42}));
    EXPECT_TRUE(fabric.hosts[0]->arrivals.empty());
    EXPECT_TRUE(fabric.hosts[1]->arrivals.empty());
}

TEST(EthernetSwitch, FloodsGroupsAndStrangers) {
    RunningFabric fabric("eth-star:4");
    CountingCargo cargo;
    send_to(fabric, 1, kBroadcast, 7, &cargo);
    send_to(fabric, 1, kNobody, 8);
    fabric.run();
    for (const std::size_t host : {0U, 2U, 3U}) {
        ASSERT_EQ(fabric.hosts[host]->arrivals.size(), 2U);
        EXPECT_EQ(fabric.hosts[host]->arrivals[0].number, 7U);
        EXPECT_EQ(fabric.hosts[host]->arrivals[1].number, 8U);
    }
    EXPECT_TRUE(fabric.hosts[1]->arrivals.empty());
    EXPECT_EQ(cargo.retained, 2);
    EXPECT_EQ(cargo.released, 3);
    EXPECT_EQ(fabric.network.frames().live(), 0U);
}

TEST(EthernetSwitch, FloodsPastPortsThatAreDown) {
    RunningFabric fabric("eth-star:3");
    fabric.network.link("h2-s0").set_state(LinkState::kDown);
    send_to(fabric, 0, kBroadcast, 7);
    fabric.run();
    EXPECT_EQ(fabric.hosts[1]->arrivals.size(), 1U);
    EXPECT_TRUE(fabric.hosts[2]->arrivals.empty());
    EXPECT_EQ(fabric.network.switch_at(0).port(PortNumber{3}).counters().total_discards(), 0U);
}

TEST(EthernetSwitch, DropsWhatIsForItsOwnPort) {
    RunningFabric fabric("eth-star:2");
    send_to(fabric, 0, fabric.port_of(0).attributes().mac, 7);
    fabric.run();
    EXPECT_EQ(fabric.network.switch_at(0)
                  .port(PortNumber{1})
                  .counters()
                  .discarded(DropReason::kBackToSender),
              1U);
}

TEST(VpiPair, HasAPortOfEachKind) {
    RunningFabric fabric("vpi-pair");
    const EndNode& host = fabric.network.host(0);
    EXPECT_EQ(host.port(PortNumber{1}).attributes().link_layer, LinkLayer::kInfiniband);
    EXPECT_EQ(host.port(PortNumber{1}).attributes().lid, Lid{1});
    EXPECT_EQ(host.port(PortNumber{2}).attributes().link_layer, LinkLayer::kEthernet);
    EXPECT_EQ(host.port(PortNumber{2}).attributes().lid, kNoLid);
    EXPECT_EQ(fabric.network.host(1).port(PortNumber{1}).attributes().lid, Lid{2});
    for (const std::uint16_t number : {std::uint16_t{1}, std::uint16_t{2}}) {
        EXPECT_EQ(host.port(PortNumber{number}).state(), PortState::kActive);
    }
}

TEST(EthernetTopology, FindsEachMistake) {
    const auto error_after = [](auto&& spoil) {
        Topology topology = make_star(3, LinkLayer::kEthernet);
        spoil(topology);
        return topology.error().value_or("");
    };
    EXPECT_THAT(error_after([](Topology& t) { t.links[0].layer = LinkLayer::kInfiniband; }),
                HasSubstr("switch s0 has links of both link layers"));
    EXPECT_THAT(error_after([](Topology& t) { t.links[0].ethernet_mtu = 9001; }),
                HasSubstr("an MTU of 9001 bytes: 1280 to 9000"));
    EXPECT_THAT(error_after([](Topology& t) {
                    t.nodes[0].port_count = 2;
                    t.nodes.back().port_count = 4;
                    t.links.push_back(t.links[0]);
                    t.links.back().a.port = PortNumber{2};
                    t.links.back().b.port = PortNumber{4};
                }),
                HasSubstr("h0 has two Ethernet ports"));
    EXPECT_THAT(error_after([](Topology& t) { t.links[0].queueing.mark_from_bytes = 1'600'001; }),
                HasSubstr("marks from 1600001 bytes"));
    EXPECT_THAT(error_after([](Topology& t) {
                    t.links[0].queueing.paused_priorities = 1;
                    t.links[0].queueing.resume_bytes = 1'048'577;
                }),
                HasSubstr("resumes at 1048577"));
}

TEST(Mtu, IsTheLargestThatFits) {
    EXPECT_EQ(largest_mtu_within(1500), Mtu::k1024);
    EXPECT_EQ(largest_mtu_within(256), Mtu::k256);
    EXPECT_EQ(largest_mtu_within(9000), Mtu::k4096);
    EXPECT_FALSE(largest_mtu_within(255).has_value());
}

}  // namespace
}  // namespace fabric
