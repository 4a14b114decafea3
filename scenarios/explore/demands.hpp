// Holds a branch that has passed to what is asked of it besides: no mistakes that its program does
// not make without faults, and an end in time.
#pragma once

#include <optional>
#include <vector>

#include "fabric/core/sim_time.hpp"

#include "scenarios/explore/subject.hpp"

namespace scenarios {

struct Demands {
    std::vector<Mistake> usual_mistakes{};        // of the run without faults
    std::optional<fabric::SimDuration> within{};  // virtual time from the begin of a run to its end
};

// Changes the outcome where the branch does not fulfil them. Of its mistakes only those remain that
// nothing excuses.
void apply(const Demands& demands, const Branch& branch, BranchResult& result);

}  // namespace scenarios
