// The data that the script of a report shows, as JSON: events, completions, the ladder. The size of
// each list is bounded: of a large trace the important rows stay, then the first ones, and the rest
// is counted.
#pragma once

#include <cstddef>
#include <string>

#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

// How many rows of a list the trace has, and how many the page has.
struct Shown {
    std::size_t all = 0;
    std::size_t rows = 0;
};

struct ReportData {
    std::string json;
    Shown events;
    Shown completions;
    Shown messages;
    std::size_t folded_only = 0;  // messages that are shown without their packets
};

ReportData report_data(const Trace& trace, const Run& run);

// "fault=1 action=drop": the fields of a record.
std::string fields_of(const Record& record);

}  // namespace simverbs::viz
