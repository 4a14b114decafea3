// Checks that no shape can express: an operation uses what its host has.
#pragma once

#include "fabric/yaml/value.hpp"

#include "scenarios/engine/scenario.hpp"

namespace scenarios {

void check_usage(const Scenario& scenario, fabric::yaml::Errors& errors);

// Adds a line for each thing that cannot be asked of processes, or done to them, with the reason.
void check_for_processes(const Scenario& scenario, fabric::yaml::Errors& errors);
// Adds an error if `run:` has an order of threads, which only a program around which the scenario
// is has.
void refuse_order(const Scenario& scenario, fabric::yaml::Errors& errors);

}  // namespace scenarios
