// A packet ladder (sequence diagram) as SVG: a life line a queue pair; packets between them with
// opcode, PSN and answer, drawn from when they were sent to when they came, or to where they were
// lost; state changes, completions and events on the lines. Every event has a row of its own, in
// the order of virtual time; the rows are not to scale, the times stand beside them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

struct LadderOptions {
    std::vector<QpName> qps;  // empty: those that first sent or got packets, up to eight
    std::int64_t from = 0;    // ps
    std::int64_t until = INT64_MAX;
    std::size_t rows = 400;  // further ones are counted and left out
};

std::string ladder(const Trace& trace, const Run& run, const LadderOptions& options);

}  // namespace simverbs::viz
