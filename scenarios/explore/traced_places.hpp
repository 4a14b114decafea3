// The places of a run of programs, from its trace.
#pragma once

#include <string>

#include "scenarios/explore/branch.hpp"

namespace scenarios {

// Adds the packets that the observer has hit and the calls, in their order, the surroundings, and a
// digest of the effects. Queue pairs are called HOST/N, the N-th of the host. Adds nothing if the
// file cannot be read.
void add_places(const std::string& trace_file, BranchResult& result);

}  // namespace scenarios
