// What a ladder shows, row by row in the order of the trace, before it has any size.
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

enum class RowKind : std::uint8_t { kSent, kEnd, kNote };

struct LadderRow {
    std::int64_t time = 0;
    std::uint64_t seq = 0;
    RowKind kind = RowKind::kNote;
    std::size_t part = 0;  // unless it is a note
    QpName qp{};           // a note's
    std::string text{};    // likewise
    std::string_view colour{};
    std::int64_t gap = 0;  // ps since the row before, where that is a break; else 0
};

struct LadderRows {
    std::vector<QpName> lines;
    std::vector<MessagePart> parts;
    std::vector<LadderRow> rows;
    std::size_t rows_left_out = 0;
    std::size_t lines_left_out = 0;
};

// With at most `most_lines` life lines, unless the options name them.
LadderRows ladder_rows(const Trace& trace, const Run& run, const LadderOptions& options,
                       std::size_t most_lines);

}  // namespace simverbs::viz
