// An overview of a run over virtual time as SVG: a lane a queue pair with its work requests, what
// failed, what was lost and sent again; and when faults fired. To scale, in a bounded number of
// steps, so that its size does not depend on that of the trace.
#pragma once

#include <string>

#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

std::string timeline_picture(const Trace& trace, const Run& run);

}  // namespace simverbs::viz
