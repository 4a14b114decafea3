// Traffic that is built in: each workload of a scenario becomes connections and programs, as a
// person would have written them.
#pragma once

#include "scenarios/engine/scenario.hpp"

namespace scenarios {

void expand_workloads(Scenario& scenario);

}  // namespace scenarios
