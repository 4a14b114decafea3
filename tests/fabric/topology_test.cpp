#include "fabric/net/topology.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Topology, MakesAPairAndStars) {
    const TopologyResult pair = make_topology("pair");
    ASSERT_TRUE(pair.topology);
    EXPECT_EQ(pair.topology->nodes.size(), 2U);
    const TopologyResult star = make_topology("star:16");
    ASSERT_TRUE(star.topology);
    EXPECT_EQ(star.topology->nodes.size(), 17U);
    EXPECT_EQ(star.topology->links.size(), 16U);
    EXPECT_EQ(star.topology->error(), std::nullopt);
}

TEST(Topology, SaysWhatWouldBeRight) {
    EXPECT_THAT(make_topology("ring").error, HasSubstr("say \"pair\" or \"star:N\", \"eth-pair\""));
    for (const auto* const spec :
         {"star:", "star:1", "star:1025", "star:4x", "star:-3", "eth-star:1"}) {
        const TopologyResult result = make_topology(spec);
        EXPECT_FALSE(result.topology);
        EXPECT_THAT(result.error, HasSubstr("a number from 2 to 1024"));
    }
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
}

}  // namespace
}  // namespace fabric
