// Attributes of two connected queue pairs that do not fit each other.
#pragma once

#include <span>
#include <string>

#include "simverbs/model/completion_faults.hpp"

#include "scenarios/engine/explain.hpp"
#include "scenarios/engine/trail.hpp"

namespace scenarios {

// Names the attributes that can have led to that cause; "" where none is known.
std::string describe_disagreement(std::span<const Record> records, const Trail& trail,
                                  simverbs::FaultCause cause, const RunNames* names);

}  // namespace scenarios
