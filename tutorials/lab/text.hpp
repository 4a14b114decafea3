// Text as it stands in a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace simverbs::lab {

// Lines of at most 100 bytes, each behind `indent`; words stay whole. Ends with a line's end.
std::string wrapped(std::string_view text, std::string_view indent);

// Puts '?' for each byte that is no UTF-8 or a control character other than a line's end or a tab.
std::string printable(std::string_view text);

// So many lines, each indented by two, and how many more there are.
std::string first_lines(std::string_view text, std::size_t most);

// A field of a CSV file (RFC 4180).
std::string csv_field(std::string_view text);

}  // namespace simverbs::lab
