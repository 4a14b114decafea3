#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/sm/routing/choice.hpp"
#include "fabric/sm/sm_events.hpp"

#include "tests/fabric/sm/swept_fabric.hpp"

namespace fabric {
namespace {

using routing::Graph;
using routing::make_routes;
using routing::Routes;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// `switches` in a ring, port 1 to the one before and 2 to the one after; a host at port 3 of each.
Graph ring(std::uint32_t switches) {
    Graph graph;
    for (std::uint32_t i = 0; i < switches; ++i) {
        graph.add_switch(3);
    }
    for (std::uint32_t i = 0; i < switches; ++i) {
        graph.connect(i, 2, (i + 1) % switches, 1);
        graph.add_destination({Lid{static_cast<std::uint16_t>(i + 1)}, i, 3});
    }
    return graph;
}

// With switches of the names s0, s1 ...
Routes routes_of(const Graph& graph, RoutingEngine wanted) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < graph.switch_count(); ++i) {
        names.push_back("s" + std::to_string(i));
    }
    return make_routes(graph, names, wanted);
}

TEST(RoutingChoice, IsFatTreeOnATree) {
    Graph graph;
    const auto leaf = graph.add_switch(3);
    const auto other = graph.add_switch(3);
    const auto top = graph.add_switch(2);
    graph.connect(leaf, 3, top, 1);
    graph.connect(other, 3, top, 2);
    graph.add_destination({Lid{1}, leaf, 1});
    graph.add_destination({Lid{2}, other, 1});
    const Routes routes = routes_of(graph, RoutingEngine::kAutomatic);
    EXPECT_EQ(routes.engine, RoutingEngine::kFatTree);
    EXPECT_THAT(routes.refused, IsEmpty());
    EXPECT_EQ(routes.report.unreachable, 0U);
}

TEST(RoutingChoice, IsFatTreeBesideASwitchThatIsAlone) {
    Graph graph;
    const auto only = graph.add_switch(2);
    graph.add_switch(2);
    graph.add_destination({Lid{1}, only, 1});
    graph.add_destination({Lid{2}, only, 2});
    const Routes routes = routes_of(graph, RoutingEngine::kAutomatic);
    EXPECT_EQ(routes.engine, RoutingEngine::kFatTree);
    EXPECT_EQ(routes.report.unreachable, 0U);
    EXPECT_THAT(routes_of(Graph(), RoutingEngine::kFatTree).refused, IsEmpty());
}

TEST(RoutingChoice, IsMinHopWhereThatHasNoLoop) {
    const Routes routes = routes_of(ring(3), RoutingEngine::kAutomatic);
    EXPECT_EQ(routes.engine, RoutingEngine::kMinHop);
    EXPECT_EQ(routes.refused, "fat-tree: s0 and s2 are on one level and linked");
    EXPECT_THAT(routes.report.credit_loop, IsEmpty());
}

TEST(RoutingChoice, IsUpDownOnARingWithALoop) {
    const Routes routes = routes_of(ring(6), RoutingEngine::kAutomatic);
    EXPECT_EQ(routes.engine, RoutingEngine::kUpDown);
    EXPECT_THAT(routes.refused, HasSubstr("; min-hop: a credit loop"));
    EXPECT_THAT(routes.report.credit_loop, IsEmpty());
    EXPECT_EQ(routes.report.unreachable, 0U);
}

TEST(RoutingChoice, TakesMinHopWithItsLoopWhenAskedTo) {
    const Routes routes = routes_of(ring(6), RoutingEngine::kMinHop);
    EXPECT_EQ(routes.engine, RoutingEngine::kMinHop);
    EXPECT_THAT(routes.refused, IsEmpty());
    EXPECT_FALSE(routes.report.credit_loop.empty());
}

TEST(RoutingChoice, FallsBackWhereThereIsNoTree) {
    const Routes routes = routes_of(ring(6), RoutingEngine::kFatTree);
    EXPECT_EQ(routes.engine, RoutingEngine::kUpDown);
    EXPECT_THAT(routes.refused, StartsWith("fat-tree: "));
}

// The ways that are cut off are missing in all tables: the first without a loop is as good as any.
TEST(RoutingChoice, DoesWithoutWhatCannotBeReached) {
    Graph graph = ring(3);
    graph.add_switch(3);
    graph.add_destination({Lid{9}, 3, 3});
    const Routes routes = routes_of(graph, RoutingEngine::kAutomatic);
    EXPECT_GT(routes.report.unreachable, 0U);
    EXPECT_THAT(routes.report.credit_loop, IsEmpty());
    EXPECT_EQ(routes.tables.at(0, Lid{2}), 2U);
}

TEST(RoutingChoice, OfASweepingSubnetManagerIsTraced) {
    test::SweptFabric fabric("ring:6");
    EXPECT_EQ(fabric.sm->engine(), RoutingEngine::kUpDown);
    EXPECT_THAT(fabric.sm->refused(), HasSubstr("min-hop: a credit loop"));
    const auto computed = fabric.trace.named("routes_computed");
    ASSERT_FALSE(computed.empty());
    EXPECT_EQ(computed.back()->text("engine"), "up-down");
    EXPECT_THAT(computed.back()->text("refused"), HasSubstr("min-hop: a credit loop"));
    EXPECT_THAT(computed.back()->text("credit_loop"), IsEmpty());

    test::SweptFabric looping("ring:6", {.routing = RoutingEngine::kMinHop});
    EXPECT_EQ(looping.sm->engine(), RoutingEngine::kMinHop);
    EXPECT_THAT(looping.trace.named("routes_computed").back()->text("credit_loop"),
                HasSubstr("s1:2 "));
}

}  // namespace
}  // namespace fabric
