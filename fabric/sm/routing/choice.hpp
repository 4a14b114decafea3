// Which engine routes a subnet.
#pragma once

#include <span>
#include <string>

#include "fabric/net/routing_engine.hpp"
#include "fabric/sm/routing/checks.hpp"
#include "fabric/sm/routing/graph.hpp"
#include "fabric/sm/routing/tables.hpp"

namespace fabric::routing {

struct Routes {
    RoutingEngine engine = RoutingEngine::kMinHop;  // that made the tables
    Tables tables;
    Report report;        // of the tables
    std::string refused;  // who else was tried, and why not: "fat-tree: no tree; ..."
};

// Automatic: of the engines whose tables have no credit loop that which leaves out the fewest
// pairs, and of those the first in the order fat-tree, min-hop, up-down. Of engines that are named,
// min-hop and up-down are taken as they are; where the graph is no tree for fat-tree, it is as
// automatic. `switches` are the names of the switches, by index.
Routes make_routes(const Graph& graph, std::span<const std::string> switches, RoutingEngine wanted);

}  // namespace fabric::routing
