// What comes of asking for a topology.
#pragma once

#include <optional>
#include <string>

#include "fabric/net/topology.hpp"

namespace fabric {

// A topology without error(), or why there is none, a line each reason: exactly one of the two.
struct TopologyResult {
    std::optional<Topology> topology;
    std::string error;
};

}  // namespace fabric
