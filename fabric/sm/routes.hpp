// Min-hop routes: for each switch the port by which each LID is nearest, over links that are up.
// Among equally near ports the LID chooses, so that routes spread and every run agrees on them.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/net/network.hpp"

namespace fabric {

// The linear forwarding table of each switch, in the order of Network::switch_at(). Call it when
// LIDs are assigned.
std::vector<std::vector<std::uint16_t>> min_hop_tables(const Network& network);

}  // namespace fabric
