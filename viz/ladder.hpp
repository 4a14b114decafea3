// A packet ladder (sequence diagram) as SVG: a life line a queue pair; messages between them with
// opcode, PSN and answer, drawn from when they were sent to when they came, or to where they were
// lost; state changes and completions on the lines. Every event has a row of its own, in the order
// of virtual time; the rows are not to scale: times stand beside them, long gaps are breaks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

struct LadderOptions {
    std::vector<QpName> qps;  // empty: the first ones that fit
    std::int64_t from = 0;    // ps
    std::int64_t until = INT64_MAX;
    std::size_t rows = 400;  // further ones are counted and left out
    bool folds = true;       // the packets of a message into one arrow
};

std::string ladder(const Trace& trace, const Run& run, const LadderOptions& options);

}  // namespace simverbs::viz
