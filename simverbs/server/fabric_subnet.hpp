// The subnet of a served world, as an operator meets it.
#pragma once

#include <string>

#include "simverbs/world/simulation.hpp"

namespace simverbs {

// Who manages it, the states of ports, and what the routes in the switches are worth, whoever made
// them.
std::string describe_subnet(Simulation& simulation, bool as_json);
// Why the subnet manager of a world cannot be told to sweep: it has none that does.
std::string describe_missing_sweeps(Simulation& simulation);

}  // namespace simverbs
