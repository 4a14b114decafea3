// Tells, in virtual time, which faults fired, what the packets that they hit carried, and what the
// two ends of that connection did then. For a run in which no request failed and the result is
// wrong: the reader sees which message overtook which.
#pragma once

#include <span>
#include <string>

#include "scenarios/engine/explain.hpp"

namespace scenarios {

// Sentences, a line each; "": no fault fired. Faults of the action `mark` change nothing and are
// left out.
std::string describe_fired_faults(std::span<const Record> records, const RunNames* names = nullptr);

}  // namespace scenarios
