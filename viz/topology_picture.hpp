// The fabric of a trace as a Graphviz graph: links with their state and rate, what went over them
// and what was lost; the busiest ones stand out, and the way of one flow.
#pragma once

#include <string>
#include <vector>

#include "viz/run.hpp"
#include "viz/topology_layout.hpp"

namespace simverbs::viz {

// `flow`: of the packets that these queue pairs sent.
std::string topology_picture(const Run& run, const std::vector<QpName>& flow,
                             DrawnNodes drawn = DrawnNodes::kThatFit);

}  // namespace simverbs::viz
