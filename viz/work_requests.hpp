// The work requests that a trace tells of: when each was posted and when it completed.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

struct WorkRequest {
    QpName qp;
    bool is_send = false;
    std::int64_t posted = 0;     // ps; the begin of the trace where that is not told
    std::size_t completion = 0;  // the record
};

// In order of completion. Requests without a completion are not among them.
std::vector<WorkRequest> work_requests(const Trace& trace, const Run& run);

}  // namespace simverbs::viz
