// A trace as the timeline that Perfetto and chrome://tracing open (the Trace Event Format): a
// process a node, a track a work queue of a queue pair with a slice a work request, a track of its
// packets, and an arrow from each packet to where it came.
//
// A work queue completes in order, so the slice of a request is the time in which it was the oldest
// one: slices of a track never overlap. When it was posted stands in the slice.
#pragma once

#include <string>

#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

// JSON text; times in microseconds with all picoseconds.
std::string timeline(const Trace& trace, const Run& run);

}  // namespace simverbs::viz
