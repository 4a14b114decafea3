// Explores programs of a served world, as `simverbs run` starts them.
#pragma once

#include <memory>
#include <vector>

#include "simverbs/cli/programs.hpp"

#include "scenarios/engine/scenario.hpp"
#include "scenarios/explore/subject.hpp"

namespace simverbs::cli {

// Serves the world of `scenario` anew for each branch, and starts `programs` in it; empty: those of
// the scenario.
std::unique_ptr<scenarios::Subject> served_subject(const scenarios::Scenario& scenario,
                                                   std::vector<ProgramSpec> programs);

}  // namespace simverbs::cli
