// The graph of a running network, for routing.
#pragma once

#include "fabric/net/network.hpp"
#include "fabric/sm/routing/graph.hpp"

namespace fabric {

// Links that are up, LIDs as they are assigned (every LID of a port with an LMC). Switches are
// those of Network::switch_at(), by index; Ethernet ones have no destinations and no links.
routing::Graph graph_of(const Network& network);

}  // namespace fabric
