#include "fabric/topology/generators.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/outcome.hpp"

namespace fabric {
namespace {

using testing::HasSubstr;

struct Shape {
    const char* spec;
    std::size_t hosts;
    std::size_t switches;
    std::size_t links;
};

std::size_t count(const Topology& topology, NodeKind kind) {
    return static_cast<std::size_t>(
        std::count_if(topology.nodes.begin(), topology.nodes.end(),
                      [kind](const NodeSpec& node) { return node.kind == kind; }));
}

// Nodes that the first one is connected with, itself included.
std::size_t reached_from_first(const Topology& topology) {
    std::map<std::string, std::vector<std::string>> neighbours;
    for (const LinkSpec& link : topology.links) {
        neighbours[link.a.node].push_back(link.b.node);
        neighbours[link.b.node].push_back(link.a.node);
    }
    std::map<std::string, bool> seen{{topology.nodes.front().name, true}};
    std::vector<std::string> frontier{topology.nodes.front().name};
    while (!frontier.empty()) {
        const std::string node = frontier.back();
        frontier.pop_back();
        for (const std::string& next : neighbours[node]) {
            if (seen.emplace(next, true).second) {
                frontier.push_back(next);
            }
        }
    }
    return seen.size();
}

class Generator : public testing::TestWithParam<Shape> {};

TEST_P(Generator, MakesAWholeOfItsSize) {
    const auto& [spec, hosts, switches, links] = GetParam();
    for (const char* const prefix : {"", "eth-"}) {
        const Outcome<Topology> made = generate_topology(std::string(prefix) + spec);
        ASSERT_TRUE(made) << error_of(made);
        EXPECT_EQ(made->error(), std::nullopt);
        EXPECT_EQ(count(*made, NodeKind::kHca), hosts);
        EXPECT_EQ(count(*made, NodeKind::kSwitch), switches);
        EXPECT_EQ(made->links.size(), links);
        EXPECT_EQ(reached_from_first(*made), hosts + switches);
        const bool ethernet = *prefix != '\0';
        for (const LinkSpec& link : made->links) {
            EXPECT_EQ(link.layer, ethernet ? LinkLayer::kEthernet : LinkLayer::kInfiniband);
        }
        Topology sorted = *made;
        sorted.sort();
        EXPECT_EQ(*made, sorted);
    }
}

// Every switch of these shapes has all its ports in use.
TEST_P(Generator, LeavesNoPortFree) {
    const Outcome<Topology> made = generate_topology(GetParam().spec);
    ASSERT_TRUE(made);
    std::size_t ports = 0;
    for (const NodeSpec& node : made->nodes) {
        ports += node.port_count;
    }
    EXPECT_EQ(ports, made->links.size() * 2);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Generator,
    testing::Values(Shape{"pair", 2, 0, 1}, Shape{"star:16", 16, 1, 16}, Shape{"ring:3", 3, 3, 6},
                    Shape{"ring:9", 9, 9, 18}, Shape{"fat-tree:2", 2, 5, 6},
                    Shape{"fat-tree:4", 16, 20, 48}, Shape{"fat-tree:8", 128, 80, 384},
                    Shape{"fat-tree2:4x2", 8, 6, 16}, Shape{"fat-tree2:3x2x5", 15, 5, 21},
                    Shape{"torus:4x3", 12, 12, 36}, Shape{"torus:3x4x5", 60, 60, 240},
                    Shape{"torus:2x2", 4, 4, 8}, Shape{"torus:2x3x2", 12, 12, 36},
                    Shape{"dragonfly:a=4,p=2,h=2", 72, 36, 162},
                    Shape{"dragonfly:h=1,a=2,p=1", 6, 6, 12}),
    [](const auto& shape) {
        std::string name;
        for (const char c : std::string(shape.param.spec)) {
            name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
        }
        return name;
    });

TEST(Generators, ThereAre11664HostsAtMostInAFatTree) {
    const Outcome<Topology> made = generate_topology("fat-tree:36");
    ASSERT_TRUE(made) << error_of(made);
    EXPECT_EQ(count(*made, NodeKind::kHca), 11'664U);
    EXPECT_EQ(count(*made, NodeKind::kSwitch), 1'620U);
    EXPECT_EQ(made->error(), std::nullopt);
}

// The end of the link at a port, as "node:port".
std::string peer(const Topology& topology, const std::string& node, std::uint16_t port) {
    for (const LinkSpec& link : topology.links) {
        for (const auto& [here, there] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
            if (here.node == node && here.port.value() == port) {
                return there.node + ":" + std::to_string(there.port.value());
            }
        }
    }
    return "nothing";
}

TEST(Generators, PortsFollowThePlace) {
    const Topology tree = make_fat_tree(4);
    EXPECT_EQ(peer(tree, "h5", 1), "pod1.edge0:2");
    EXPECT_EQ(peer(tree, "pod1.edge0", 4), "pod1.agg1:1");
    EXPECT_EQ(peer(tree, "pod1.agg1", 3), "core2:2");
    const Topology ring = make_ring(5);
    EXPECT_EQ(peer(ring, "s4", 2), "s0:3");
    const Topology torus = generate_topology("torus:3x2").value();
    EXPECT_EQ(peer(torus, "s0.0", 3), "s2.0:2");
    EXPECT_EQ(peer(torus, "s1.0", 4), "s1.1:4");
    EXPECT_EQ(peer(torus, "s1.1", 1), "h3:1");
    const Topology dragonfly = make_dragonfly(4, 2, 2);
    EXPECT_EQ(peer(dragonfly, "g0.s0", 3), "g0.s1:3");
    EXPECT_EQ(peer(dragonfly, "g0.s0", 6), "g1.s3:7");
}

TEST(Generators, SayWhatWouldBeRight) {
    EXPECT_THAT(error_of(generate_topology("cube")),
                HasSubstr("\"cube\" is no topology: say pair, star:N, ring:N, fat-tree:K"));
    for (const auto* const spec :
         {"star:", "star", "star:1", "star:1025", "star:4x", "star:-3", "eth-star:1"}) {
        EXPECT_THAT(error_of(generate_topology(spec)), HasSubstr("N hosts, 2 to 1024")) << spec;
    }
    for (const auto* const spec : {"fat-tree:3", "fat-tree:38", "fat-tree:0", "fat-tree:4x4"}) {
        EXPECT_THAT(error_of(generate_topology(spec)), HasSubstr("an even number from 2 to 36"));
    }
    for (const auto* const spec : {"ring:2", "ring:1025"}) {
        EXPECT_THAT(error_of(generate_topology(spec)), HasSubstr("3 to 1024"));
    }
    for (const auto* const spec : {"torus:4", "torus:1x4", "torus:160x160", "torus:2x2x2x2",
                                   "torus:1024x1024x1024", "torus:4x"}) {
        EXPECT_THAT(error_of(generate_topology(spec)), HasSubstr("no more than 24,575 switches"));
    }
    for (const auto* const spec : {"fat-tree2:4", "fat-tree2:1000x64", "fat-tree2:0x2",
                                   "fat-tree2:2x1000x25", "fat-tree2:1x1x1"}) {
        EXPECT_THAT(error_of(generate_topology(spec)), HasSubstr("S + H up to 1024")) << spec;
    }
    for (const auto* const spec : {"dragonfly:4,2,2", "dragonfly:a=4,p=2", "dragonfly:a=4,a=4,h=2",
                                   "dragonfly:a=4,p=2,h=2,g=3", "dragonfly:a=64,p=16,h=16"}) {
        EXPECT_THAT(error_of(generate_topology(spec)), HasSubstr("P hosts and H global links"))
            << spec;
    }
}

}  // namespace
}  // namespace fabric
