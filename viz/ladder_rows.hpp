// The content of a ladder, row by row in the order of the trace, before it has any size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "viz/ladder.hpp"
#include "viz/messages.hpp"
#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

// Stands for the host itself, where it has events and no queue pair: it has no such number.
inline constexpr std::uint32_t kHostLine = UINT32_MAX;

// The first and the last event of a queue pair, by their numbers.
struct Life {
    std::uint64_t first = UINT64_MAX;
    std::uint64_t last = 0;

    void extend(std::uint64_t seq) {
        first = std::min(first, seq);
        last = std::max(last, seq);
    }
    [[nodiscard]] bool meets(const Life& other) const {
        return first <= other.last && other.first <= last;
    }
};
using Lives = std::map<QpName, Life>;

// kHeading: the places of the row's `heads` change to these queue pairs.
enum class RowKind : std::uint8_t { kSent, kEnd, kNote, kHeading };

struct LadderRow {
    std::int64_t time = 0;
    std::uint64_t seq = 0;
    RowKind kind = RowKind::kNote;
    std::size_t part = 0;         // of what is sent and ends
    std::size_t end = 0;          // of the part's packets: see RunPacket::ends()
    std::vector<QpName> marks{};  // of a note, from left to right; the words stand at the first
    std::string text{};           // likewise
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
    std::map<QpName, std::size_t>
        peers_not_drawn;    // with their packets, where lines were asked for
    std::int64_t from = 0;  // ps: of the first row and the last
    std::int64_t until = 0;
};

// With life lines in at most `most_places` places, unless the options name them. Queue pairs of one
// node of which one had its last event before the other had its first share a place.
LadderRows ladder_rows(const Trace& trace, const Run& run, const LadderOptions& options,
                       std::size_t most_places);

}  // namespace simverbs::viz
