// Writes an exploration as one HTML page that needs nothing else: no network and no other file.
#pragma once

#include <string>

#include "scenarios/explore/explored.hpp"

namespace scenarios {

// Has the summary, the map of single faults and the findings, each with its reproducer. What the
// page has no room for is summed up, and the page says so.
std::string html(const Explored& explored);

}  // namespace scenarios
