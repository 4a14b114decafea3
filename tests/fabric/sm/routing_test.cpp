// Routing engines and what the checks say of their tables.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/sm/routing/checks.hpp"
#include "fabric/sm/routing/engines.hpp"
#include "fabric/sm/routing/topology_graph.hpp"
#include "fabric/topology/generators.hpp"

#include "tests/support/outcome.hpp"

namespace fabric::routing {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NamedGraph named_graph_of(const std::string& spec) {
    return graph_of(generate_topology(spec).value());
}
Graph graph_of_shape(const std::string& spec) {
    return named_graph_of(spec).graph;
}

Report routed_up_down(const Graph& graph) {
    return check(graph, up_down(graph, find_roots(graph)));
}

class EveryShape : public testing::TestWithParam<const char*> {
  protected:
    const Graph graph_ = graph_of_shape(GetParam());
};

TEST_P(EveryShape, MinHopReachesEveryoneByShortestRoutes) {
    const Report report = check(graph_, min_hop(graph_));
    EXPECT_GT(report.pairs, 0U);
    EXPECT_EQ(report.unreachable, 0U);
    EXPECT_EQ(report.longer_than_needed, 0U);
    EXPECT_EQ(report.longest, report.diameter);
}

TEST_P(EveryShape, UpDownReachesEveryoneWithoutACreditLoop) {
    const Report report = routed_up_down(graph_);
    EXPECT_EQ(report.unreachable, 0U);
    EXPECT_THAT(report.credit_loop, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryShape,
                         testing::Values("star:5", "ring:3", "ring:8", "fat-tree:2", "fat-tree:4",
                                         "fat-tree:6", "fat-tree2:4x2", "fat-tree2:3x2x5",
                                         "torus:4x4", "torus:3x4x5", "torus:2x2x2",
                                         "dragonfly:a=4,p=2,h=2"));

class EveryTree : public testing::TestWithParam<const char*> {
  protected:
    const NamedGraph named_ = named_graph_of(GetParam());
    const Graph& graph_ = named_.graph;
};

TEST_P(EveryTree, FatTreeRoutesAreShortestAndNeverLoop) {
    const Outcome<Tables> tree = fat_tree(graph_, named_.switches);
    ASSERT_TRUE(tree) << error_of(tree);
    const Report report = check(graph_, *tree);
    EXPECT_EQ(report.unreachable, 0U);
    EXPECT_EQ(report.longer_than_needed, 0U);
    EXPECT_THAT(report.credit_loop, IsEmpty());
}

TEST_P(EveryTree, UpDownRoutesAreShortest) {
    EXPECT_EQ(routed_up_down(graph_).longer_than_needed, 0U);
}

INSTANTIATE_TEST_SUITE_P(Trees, EveryTree,
                         testing::Values("star:5", "fat-tree:2", "fat-tree:4", "fat-tree:8",
                                         "fat-tree2:4x2", "fat-tree2:3x2x5"));

class EveryCycle : public testing::TestWithParam<const char*> {};

// Min-hop on a ring is what a credit loop is shown with; up-down pays with longer routes.
TEST_P(EveryCycle, MinHopMayLockUpAndUpDownDoesNot) {
    const NamedGraph named = named_graph_of(GetParam());
    const Graph& graph = named.graph;
    const Report shortest = check(graph, min_hop(graph));
    ASSERT_FALSE(shortest.credit_loop.empty());
    const std::vector<Channel>& loop = shortest.credit_loop;
    for (std::size_t i = 0; i < loop.size(); ++i) {
        const Channel& next = loop[(i + 1) % loop.size()];
        EXPECT_EQ(graph.ports(loop[i].from)[loop[i].port].at, next.from) << "channels follow";
    }
    const Report safe = routed_up_down(graph);
    EXPECT_THAT(safe.credit_loop, IsEmpty());
    EXPECT_EQ(safe.unreachable, 0U);
    EXPECT_GT(safe.longer_than_needed, 0U);
    const auto linked = std::ranges::find_if(
        graph.ports(0), [](const Neighbour& next) { return next.at != kNobody; });
    EXPECT_EQ(error_of(fat_tree(graph, named.switches)),
              fmt::format("{} and {} are on one level and linked", named.switches[0],
                          named.switches[linked->at]));
}

INSTANTIATE_TEST_SUITE_P(Cycles, EveryCycle, testing::Values("ring:5", "ring:8", "torus:5x5"));

// Each direction of each link carries as many routes as any other on its level.
TEST(FatTreeRouting, SharesTheLoadEvenly) {
    const NamedGraph named = named_graph_of("fat-tree:8");
    const Graph& graph = named.graph;
    const Report even = check(graph, *fat_tree(graph, named.switches));
    const Report shortest = check(graph, min_hop(graph));
    // 4 hosts a leaf: a link up from a leaf carries 4 x 31 destinations of other leaves in 128.
    EXPECT_EQ(even.most_routes, 4U * 124 / 4);
    EXPECT_EQ(shortest.most_routes, even.most_routes) << "spread as they come";
    EXPECT_EQ(even.routes, shortest.routes) << "all routes of both are shortest";
}

TEST(FindRoots, AreTheTopsOfATreeOrItsMiddle) {
    const NamedGraph tree = graph_of(make_fat_tree(4));
    std::set<std::string> names;
    for (const SwitchIndex root : find_roots(tree.graph)) {
        names.insert(tree.switches[root]);
    }
    EXPECT_THAT(names, ElementsAre("core0", "core1", "core2", "core3"));
    EXPECT_THAT(find_roots(graph_of_shape("ring:5")), ElementsAre(0));
    EXPECT_THAT(find_roots(Graph()), IsEmpty());
}

// s0 - s1 - s2, a host on s0 and one on s2.
Graph line_of_three() {
    Graph graph;
    for (int i = 0; i < 3; ++i) {
        graph.add_switch(3);
    }
    graph.connect(0, 2, 1, 1);
    graph.connect(1, 2, 2, 2);
    graph.add_destination({Lid{1}, 0, 1});
    graph.add_destination({Lid{2}, 2, 1});
    return graph;
}

TEST(Checks, FollowTables) {
    const Graph graph = line_of_three();
    Tables tables(3, graph.lid_count());
    EXPECT_EQ(check(graph, tables).unreachable, 2U);
    tables = min_hop(graph);
    EXPECT_EQ(tables.at(0, Lid{2}), 2U);
    EXPECT_EQ(tables.at(2, Lid{2}), 1U);
    const Report right = check(graph, tables);
    EXPECT_EQ(right.pairs, 2U);
    EXPECT_EQ(right.unreachable, 0U);
    EXPECT_EQ(right.longest, 2U);
    EXPECT_EQ(right.channels, 4U);
    EXPECT_EQ(right.routes, 4U);
    EXPECT_EQ(right.mean_routes(), 1U);
}

TEST(Checks, NoticeRoutesThatComeRoundOrLeaveByTheWrongPort) {
    const Graph graph = line_of_three();
    Tables tables = min_hop(graph);
    tables.set(1, Lid{2}, 1);  // back to s0
    EXPECT_EQ(check(graph, tables).unreachable, 1U);
    tables = min_hop(graph);
    tables.set(2, Lid{2}, 3);  // to nobody
    EXPECT_EQ(check(graph, tables).unreachable, 1U);
    tables.set(2, Lid{2}, 77);  // there is no such port
    EXPECT_EQ(check(graph, tables).unreachable, 1U);
}

TEST(Checks, NoticeDetours) {
    const Graph graph = graph_of_shape("ring:5");
    Tables tables = min_hop(graph);
    const Lid h1{2};
    for (const SwitchIndex one : {0U, 4U, 3U, 2U}) {  // the long way round to s1
        tables.set(one, h1, 3);
    }
    const Report report = check(graph, tables);
    EXPECT_EQ(report.unreachable, 0U);
    EXPECT_EQ(report.longest, 4U);
    EXPECT_EQ(report.diameter, 2U);
    EXPECT_EQ(report.longer_than_needed, 2U) << "from s0 and from s4";
}

TEST(Engines, LeaveOutWhatIsNotConnected) {
    Graph graph = line_of_three();
    const SwitchIndex alone = graph.add_switch(2);
    graph.add_destination({Lid{3}, alone, 1});
    for (const Tables& tables : {min_hop(graph), up_down(graph, find_roots(graph))}) {
        EXPECT_EQ(tables.at(0, Lid{3}), Tables::kNoRoute);
        EXPECT_EQ(tables.at(alone, Lid{3}), 1U);
        EXPECT_EQ(check(graph, tables).unreachable, 4U);
    }
}

TEST(TopologyGraph, HasNoEthernet) {
    EXPECT_EQ(graph_of_shape("eth-star:4").switch_count(), 0U);
    EXPECT_EQ(graph_of_shape("vpi-pair").destination_count(), 0U);
    EXPECT_EQ(graph_of_shape("star:4").destination_count(), 5U);
}

}  // namespace
}  // namespace fabric::routing
