// Routing engines: from a graph to forwarding tables, without side effects and always the same.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fabric/core/outcome.hpp"
#include "fabric/sm/routing/graph.hpp"
#include "fabric/sm/routing/tables.hpp"

namespace fabric::routing {

// Every route is a shortest one; of equally short ones that by the port that fewest routes between
// hosts leave by so far. Credit loops are possible where the switches form one.
Tables min_hop(const Graph& graph);

// Routes go up towards the roots and then down, never up again, which no credit loop can come of
// (Schroeder et al., Autonet, 1991); the shortest of these, spread as by min_hop. Every host
// reaches every host and switch where the graph is connected and there is one root, or all roots
// are as far from each switch with hosts; routes from one root to another are left out.
Tables up_down(const Graph& graph, std::span<const SwitchIndex> roots);

// For up_down(): the tops of a tree, which are equally far from all switches with hosts and have
// none themselves; else the one that is nearest to them all together. At least one, unless the
// graph is empty.
std::vector<SwitchIndex> find_roots(const Graph& graph);

// Up and down in a tree of levels whose lowest has the hosts. The way up depends on the destination
// alone, so that routes to one host meet early and those to several part (D-mod-K: Zahavi, 2012):
// permutations of a full tree do not collide on their way down. Fails where the graph is no such
// tree, and says why by the names of the switches: `switches`, by index.
Outcome<Tables> fat_tree(const Graph& graph, std::span<const std::string> switches);

}  // namespace fabric::routing
