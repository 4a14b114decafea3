// The content of a ladder, row by row in the order of the trace, before it has any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "viz/ladder.hpp"
#include "viz/messages.hpp"
#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

// kHeading: the places of the row's `heads` change to these queue pairs.
enum class RowKind : std::uint8_t { kSent, kEnd, kNote, kHeading };

struct LadderRow {
    std::int64_t time = 0;
    std::uint64_t seq = 0;
    RowKind kind = RowKind::kNote;
    std::size_t part = 0;  // of what is sent and ends
    QpName qp{};           // a note's
    std::string text{};    // likewise
    std::string_view colour{};
    std::int64_t gap = 0;  // ps since the row before, where that is a break; else 0
    std::vector<QpName> heads{};
};

struct LadderRows {
    std::vector<QpName> lines;
    std::vector<std::size_t> places;  // of each line, from left to right; several may share one
    std::vector<QpName> heads;        // lines that begin at the top
    std::vector<MessagePart> parts;
    std::vector<LadderRow> rows;
    std::size_t rows_drawn = 0;  // headings aside
    std::size_t rows_left_out = 0;
    std::size_t lines_left_out = 0;
};

// With life lines in at most `most_places` places, unless the options name them. Queue pairs of one
// node of which one had its last event before the other had its first share a place.
LadderRows ladder_rows(const Trace& trace, const Run& run, const LadderOptions& options,
                       std::size_t most_places);

}  // namespace simverbs::viz
