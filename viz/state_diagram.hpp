// A state machine as a Graphviz digraph: each move with its trigger, the attributes that it needs
// and what it leads to; of a machine with counts, which moves were made and which never.
#pragma once

#include <string>

#include "viz/state_machine.hpp"

namespace simverbs::viz {

std::string state_diagram(const StateMachine& machine);

}  // namespace simverbs::viz
