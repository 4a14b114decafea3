#include "simverbs/server/text_table.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace simverbs {

std::string text_table(std::span<const TableRow> rows) {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const TableRow& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string text;
    for (const TableRow& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            text += fmt::format("{:<{}}", row[i], i + 1 == row.size() ? 0 : widths[i] + 2);
        }
        text += '\n';
    }
    return text;
}

}  // namespace simverbs
