// A table as a command prints it.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace simverbs {

using TableRow = std::vector<std::string>;

// Columns as wide as their widest entry, two spaces apart, a line a row; the first row is a heading
// and says how many columns there are.
std::string text_table(std::span<const TableRow> rows);

}  // namespace simverbs
