// What no shape can say: an operation uses what its host has.
#pragma once

#include "fabric/yaml/value.hpp"

#include "scenarios/engine/scenario.hpp"

namespace scenarios {

void check_usage(const Scenario& scenario, fabric::yaml::Errors& errors);

// What cannot be asked of processes, or put into them: why it cannot, a line each.
void check_for_processes(const Scenario& scenario, fabric::yaml::Errors& errors);

}  // namespace scenarios
