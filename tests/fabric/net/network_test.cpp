#include "fabric/net/network.hpp"

#include <gtest/gtest.h>

#include "fabric/topology/generators.hpp"

namespace fabric {
namespace {

struct Built {
    explicit Built(Topology topology) : network(loop, bus, std::move(topology)) {}
    EventLoop loop;
    trace::Bus bus;
    Network network;
};

TEST(Network, NumbersHostsThenSwitches) {
    const Built built(make_star(11));
    EXPECT_EQ(built.network.node(NodeId{2}).name(), "h2");
    EXPECT_EQ(built.network.node(NodeId{10}).name(), "h10");
    EXPECT_EQ(built.network.node(NodeId{11}).name(), "s0");
    EXPECT_EQ(built.network.host_count(), 11U);
    EXPECT_EQ(built.network.switch_count(), 1U);
}

TEST(Network, FindsNodesAndLinksByName) {
    const Built built(make_star(3));
    EXPECT_EQ(built.network.find_node("s0")->kind(), NodeKind::kSwitch);
    EXPECT_EQ(built.network.find_host("h1"), &built.network.host(1));
    EXPECT_EQ(built.network.find_host("s0"), nullptr);
    EXPECT_EQ(built.network.find_node("h3"), nullptr);
    EXPECT_EQ(&built.network.link("h2-s0"), &built.network.link(2));
    EXPECT_EQ(&built.network.link("s0-h2"), &built.network.link(2));
    EXPECT_EQ(built.network.find_link("h0-h1"), nullptr);
    EXPECT_EQ(built.network.find_link("h0"), nullptr);
}

TEST(Network, TellsParallelLinksApart) {
    Topology topology = make_pair();
    for (NodeSpec& node : topology.nodes) {
        node.port_count = 2;
    }
    LinkSpec second = topology.links[0];
    second.a.port = PortNumber{2};
    second.b.port = PortNumber{2};
    topology.links.push_back(second);
    const Built built(topology);
    EXPECT_EQ(built.network.link("h0-h1#2").end(0).number(), PortNumber{2});
    EXPECT_EQ(&built.network.link("h1-h0#2"), &built.network.link(1));
}

TEST(Network, LeavesItsPortsInInit) {
    const Built built(make_pair());
    const Port& port = built.network.host(0).port(PortNumber{1});
    EXPECT_EQ(port.state(), PortState::kInit);
    EXPECT_EQ(port.physical_state(), PhysicalState::kLinkUp);
    EXPECT_EQ(port.attributes().gids.at(0).gid.subnet_prefix(), kDefaultSubnetPrefix);
    EXPECT_EQ(port.attributes().gids.at(0).gid.interface_id(), port.attributes().guid.value());
}

TEST(Network, APortWithoutALinkIsDownAndDrops) {
    Topology topology = make_pair();
    topology.links.clear();
    Built built(topology);
    Port& port = built.network.host(0).port(PortNumber{1});
    EXPECT_EQ(port.state(), PortState::kDown);
    EXPECT_FALSE(port.apply(PortTrigger::kSetArmed));
    port.send(built.network.frames().make());
    EXPECT_EQ(port.counters().discarded(DropReason::kPortNotActive), 1U);
    EXPECT_EQ(built.network.frames().live(), 0U);
    EXPECT_EQ(port.transmitter_free_at(), built.loop.now());
}

using NetworkDeathTest = testing::Test;

TEST(NetworkDeathTest, IsNotBuiltFromAWrongTopology) {
    EXPECT_DEATH(Built(Topology{}), "at least one node");
}

}  // namespace
}  // namespace fabric
