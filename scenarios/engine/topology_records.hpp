// The nodes and links of a scenario as a trace file describes them when it begins: callbacks of
// records are not told of them.
#pragma once

#include <vector>

#include "fabric/net/topology.hpp"

#include "scenarios/engine/observation.hpp"

namespace scenarios {

std::vector<Record> records_of_topology(fabric::Topology topology);

}  // namespace scenarios
