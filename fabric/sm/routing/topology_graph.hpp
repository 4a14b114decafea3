// The graph of a topology that is not built, with the LIDs that a subnet manager gives it at first.
#pragma once

#include <string>
#include <vector>

#include "fabric/net/topology.hpp"
#include "fabric/sm/routing/graph.hpp"

namespace fabric::routing {

struct NamedGraph {
    Graph graph;
    std::vector<std::string> switches;  // names, by index
};

// InfiniBand links and nodes only. LIDs from 1: ports of HCAs by rank, then switches. `topology`
// is sorted and has no error().
NamedGraph graph_of(const Topology& topology);

}  // namespace fabric::routing
