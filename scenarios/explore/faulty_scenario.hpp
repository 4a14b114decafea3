// A scenario with the faults of a branch, and what its verdict says of the branch.
#pragma once

#include <span>
#include <string>

#include "scenarios/engine/run.hpp"
#include "scenarios/engine/scenario.hpp"
#include "scenarios/explore/subject.hpp"

namespace scenarios {

// Adds the faults of the branch behind those of the scenario.
Scenario with_faults(Scenario scenario, const Branch& branch);

// Adds the observer before all faults: one that drops a packet hides it from those behind.
Scenario with_observer(Scenario scenario);

// Takes out every expectation but the invariants.
Scenario expecting_little(Scenario scenario);

// Returns true if each fault of the branch has fired.
bool all_fired(const Verdict& verdict, const Branch& branch);

// Returns true if judge() takes any of the failures into account.
bool any_counts(std::span<const Failure> failures, bool is_repaired);

// Takes what the earliest failure says that counts, if there is one. After faults that connections
// do not repair, only broken invariants count.
void judge(const Verdict& verdict, bool is_repaired, BranchResult& result);

// Returns the key `fabric` of a scenario, for a topology as commands take it: a file or a
// generator.
std::string fabric_text(const std::string& topology);

}  // namespace scenarios
