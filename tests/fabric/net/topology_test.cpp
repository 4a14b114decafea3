#include "fabric/net/topology.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/net/network.hpp"
#include "fabric/topology/generators.hpp"

namespace fabric {
namespace {

using testing::HasSubstr;

TEST(NaturalOrder, CountsRunsOfDigits) {
    EXPECT_TRUE(natural_less("h2", "h10"));
    EXPECT_FALSE(natural_less("h10", "h2"));
    EXPECT_TRUE(natural_less("a9.b", "a10.a"));
    EXPECT_TRUE(natural_less("h", "h0"));
    EXPECT_FALSE(natural_less("h1", "h1"));
    EXPECT_NE(natural_less("h1", "h01"), natural_less("h01", "h1"));
}

TEST(Topology, NumbersFollowNamesNotTheOrderOfWriting) {
    Topology topology = make_star(12);
    Topology shuffled = topology;
    std::reverse(shuffled.nodes.begin(), shuffled.nodes.end());
    std::reverse(shuffled.links.begin(), shuffled.links.end());
    for (LinkSpec& link : shuffled.links) {
        std::swap(link.a, link.b);
    }
    topology.sort();
    shuffled.sort();
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        EXPECT_EQ(topology.nodes[i].name, shuffled.nodes[i].name);
    }
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        EXPECT_EQ(topology.links[i].a.node, shuffled.links[i].a.node);
        EXPECT_EQ(topology.links[i].b.port, shuffled.links[i].b.port);
    }
    EXPECT_EQ(topology.nodes[10].name, "h10");
    EXPECT_EQ(topology.nodes[12].name, "s0");
}

TEST(Topology, FindsEachMistake) {
    const auto error_after = [](auto&& spoil) {
        Topology topology = make_pair();
        spoil(topology);
        return topology.error().value_or("");
    };
    EXPECT_THAT(error_after([](Topology& t) { t.nodes.clear(); }), HasSubstr("at least one node"));
    EXPECT_THAT(error_after([](Topology& t) { t.nodes[0].name = "h 0"; }), HasSubstr("\"h 0\""));
    EXPECT_THAT(error_after([](Topology& t) { t.nodes[0].name = "h1"; }),
                HasSubstr("two nodes are called h1"));
    EXPECT_THAT(error_after([](Topology& t) { t.nodes[0].port_count = 0; }),
                HasSubstr("1 to 254 are possible"));
    EXPECT_THAT(error_after([](Topology& t) { t.links[0].a.node = "h7"; }),
                HasSubstr("\"h7\", which is no node"));
    EXPECT_THAT(error_after([](Topology& t) { t.links[0].a.port = PortNumber{2}; }),
                HasSubstr("port 2 of h0, which has ports 1 to 1"));
    EXPECT_THAT(error_after([](Topology& t) { t.links.push_back(t.links[0]); }),
                HasSubstr("port 1 of h0 has two links"));
    EXPECT_THAT(error_after([](Topology& t) { t.links[0].latency = SimDuration(-1); }),
                HasSubstr("negative latency"));
    EXPECT_THAT(error_after([](Topology& t) {
                    t.nodes[0].port_count = 2;
                    t.links[0].b = {"h0", PortNumber{2}};
                }),
                HasSubstr("connects h0 with itself"));
    EXPECT_THAT(error_after([](Topology& t) { t.links[0].vls = 3; }),
                HasSubstr("has 3 VLs: 1, 2, 4, 8 and 15 are possible"));
    EXPECT_THAT(error_after([](Topology& t) { t.links[0].buffer_bytes = 4096; }),
                HasSubstr("buffers 4096 bytes a VL: 8448 to 131072 are possible"));
    EXPECT_THAT(error_after([](Topology& t) { t.nodes[0].description = std::string(65, 'x'); }),
                HasSubstr("h0 is described in 65 bytes: 64 are possible"));
    EXPECT_THAT(error_after([](Topology& t) { t.nodes[0].port_guids.resize(2); }),
                HasSubstr("h0 has GUIDs of 2 ports and 1 ports"));
    EXPECT_THAT(error_after([](Topology& t) { t.nodes[0].host = "a-b"; }),
                HasSubstr("host name \"a-b\""));
    EXPECT_THAT(error_after([](Topology& t) {
                    t.nodes[0].host = "h1.x";
                    t.nodes[1].host = "h0";
                }),
                HasSubstr("h0 is a host, and an HCA of host h1.x"));
    EXPECT_THAT(error_after([](Topology& t) {
                    t.nodes[0].kind = NodeKind::kSwitch;
                    t.nodes[0].personality = "rxe";
                }),
                HasSubstr("h0 has what only an HCA has"));
}

TEST(Topology, NeedsALidForEachPort) {
    Topology topology;
    for (int i = 0; i < 194; ++i) {
        topology.nodes.push_back({std::string(1, 'h').append(std::to_string(i)), NodeKind::kHca,
                                  Topology::kMaxHcaPorts});
    }
    EXPECT_THAT(topology.error().value_or(""),
                HasSubstr("49276 ports and switches need a LID: there are 49151"));
    topology.nodes.resize(193);
    EXPECT_EQ(topology.error(), std::nullopt);
}

TEST(Topology, GuidsAreGivenOrFollowFromTheRank) {
    NodeSpec node{"h0", NodeKind::kHca, 2};
    EXPECT_EQ(node_guid(node, NodeId{3}), make_guid(NodeId{3}, PortNumber{0}));
    EXPECT_EQ(port_guid(node, NodeId{3}, PortNumber{2}), make_guid(NodeId{3}, PortNumber{2}));
    node.guid = Guid{0x2C9'0000'0010};
    EXPECT_EQ(node_guid(node, NodeId{3}), node.guid);
    EXPECT_EQ(port_guid(node, NodeId{3}, PortNumber{2}), Guid{0x2C9'0000'0012});
    node.port_guids = {Guid{0x2C9'0000'0010}};
    EXPECT_EQ(port_guid(node, NodeId{3}, PortNumber{1}), node.guid);
    EXPECT_EQ(port_guid(node, NodeId{3}, PortNumber{2}), Guid{0x2C9'0000'0012});
}

TEST(Topology, GuidsDiffer) {
    Topology topology = make_pair();
    topology.nodes[0].guid = topology.nodes[1].guid = Guid{7};
    EXPECT_THAT(topology.error().value_or(""),
                HasSubstr("h0 and h1 have the GUID 0x0000000000000007"));
    topology.nodes[1].guid = Guid{6};
    topology.nodes[0].port_guids = {Guid{7}};
    EXPECT_THAT(topology.error().value_or(""), HasSubstr("port 1 of h0 and port 1 of h1 have"));
    topology.nodes[1].guid = Guid{9};
    EXPECT_EQ(topology.error(), std::nullopt);
}

TEST(Topology, ANetworkHasWhatItSays) {
    Topology topology = make_star(2);
    topology.nodes[0] = {"h0.1", NodeKind::kHca, 1};
    topology.nodes[0].host = "h0";
    topology.nodes[0].port_guids = {Guid{0x77}};
    topology.links[0].a.node = "h0.1";
    topology.nodes[2].description = "a rack's switch";
    topology.nodes[2].guid = Guid{0x99};
    topology.nodes[2].forwarding_delay = 5_ns;
    ASSERT_EQ(topology.error(), std::nullopt);
    EventLoop loop;
    trace::Bus bus;
    const Network network(loop, bus, topology);
    const EndNode& hca = *network.find_host("h0");
    EXPECT_EQ(hca.name(), "h0.1");
    EXPECT_EQ(hca.description(), "h0 h0.1");
    EXPECT_EQ(hca.guid(), make_guid(NodeId{0}, PortNumber{0}));
    EXPECT_EQ(hca.port(PortNumber{1}).attributes().guid, Guid{0x77});
    EXPECT_EQ(hca.port(PortNumber{1}).attributes().gids.at(0).gid.interface_id(), 0x77U);
    EXPECT_EQ(network.switch_at(0).description(), "a rack's switch");
    EXPECT_EQ(network.switch_at(0).port(PortNumber{0}).attributes().guid, Guid{0x99});
}

}  // namespace
}  // namespace fabric
