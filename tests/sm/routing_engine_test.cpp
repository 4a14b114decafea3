#include "fabric/sm/routing_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric {
namespace {

using testing::ElementsAre;

// 0 - 1 - 2 in a row, port 1 to the left and 2 to the right; a host at port 3 of each.
RoutingGraph row() {
    RoutingGraph graph;
    graph.switches.resize(3, std::vector<RoutingGraph::Neighbour>(4));
    graph.switches[0][2] = {1, 1};
    graph.switches[1][1] = {0, 2};
    graph.switches[1][2] = {2, 1};
    graph.switches[2][1] = {1, 2};
    for (std::uint16_t i = 0; i < 3; ++i) {
        graph.targets.push_back({Lid{static_cast<std::uint16_t>(i + 1)}, i, 3});
    }
    return graph;
}

TEST(MinHopRoutes, LeadTheShortestWay) {
    const LinearTables tables = min_hop_routes(row());
    EXPECT_THAT(tables[0], ElementsAre(255, 3, 2, 2));
    EXPECT_THAT(tables[1], ElementsAre(255, 1, 3, 2));
    EXPECT_THAT(tables[2], ElementsAre(255, 1, 1, 3));
}

TEST(MinHopRoutes, SpreadOverEqualWays) {
    RoutingGraph graph = row();
    graph.switches[0][1] = {1, 3};
    graph.switches[1][3] = {0, 1};
    graph.targets.push_back({Lid{4}, 1, 0});
    const LinearTables tables = min_hop_routes(graph);
    EXPECT_NE(tables[0][3], tables[0][4]);
}

TEST(MinHopRoutes, LeadNowhereWhereThereIsNoWay) {
    RoutingGraph graph = row();
    graph.switches[1][2] = {};
    graph.switches[2][1] = {};
    EXPECT_EQ(min_hop_routes(graph)[0][3], 255);
}

}  // namespace
}  // namespace fabric
