// The state of a world at this moment, for `simverbs watch`: queue pairs with what they have done
// and wait for, ports with what they have counted. One line of JSON, whose numbers only grow.
#pragma once

#include <string>

#include "simverbs/world/simulation.hpp"

namespace simverbs {

// Members: topology, time_ps, events, users (as text), queue_pairs, ports (those of hosts, and of
// switches those with a link). Changes nothing.
std::string watch_report(Simulation& simulation, const std::string& users);

}  // namespace simverbs
