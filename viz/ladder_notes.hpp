// The records of a ladder that are no packets: state changes, completions, events, faults, links.
#pragma once

#include "viz/ladder_rows.hpp"

namespace simverbs::viz {

// The life line that a record belongs on; the host's where it concerns no queue pair by name.
QpName line_of(const Record& record);

// Puts a row for each on the life lines that it concerns. Lines have their places.
void add_notes(const Trace& trace, const Run& run, const LadderOptions& options, const Lives& lives,
               LadderRows& ladder);

}  // namespace simverbs::viz
