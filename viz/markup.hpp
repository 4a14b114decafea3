// Strings and labels of DOT, and numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace simverbs::viz {

// A quoted string of DOT.
std::string dot_quoted(std::string_view text);

// An HTML-like label of DOT around `markup`. Spaces next to tags become no-break spaces: Graphviz
// makes an SVG text of each run between tags, and SVG drops spaces at the ends of a text.
std::string html_label(std::string_view markup);

// Writes virtual time: "0 ps", "12.3 ns", "1.05 us", "58 s"; at most three decimals, exactly
// rounded down.
std::string time_text(std::int64_t picoseconds);

// "100 Gb/s".
std::string rate_text(std::uint64_t bits_per_second);

}  // namespace simverbs::viz
