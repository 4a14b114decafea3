// Faults that fired, in words.
#pragma once

#include <span>
#include <string>

#include "scenarios/engine/observation.hpp"
#include "scenarios/engine/roots.hpp"

namespace scenarios {

// "\"lost\" (drop)"; a fault without a name is told by its number.
std::string fault_name(std::span<const Record> records, const Record& fired);

// Names the object that it was done to, and the packet that set it off: "on link h0-s0,", "at h0,
// SEND_ONLY, PSN 1 of its queue pair, transmission 1,".
std::string place_text(const Record& fired, const FaultPlaces& places);

}  // namespace scenarios
