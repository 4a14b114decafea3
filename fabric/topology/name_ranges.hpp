// Names with ranges in them: "h0..3" is h0, h1, h2, h3; "g0..1.s0..1" is four, the last counting
// first; "n08..11" keeps its zeros.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/outcome.hpp"

namespace fabric {

inline constexpr std::size_t kMaxRangeNames = 65'535;

// Nothing, and `error` set, when a range counts down or there are more than kMaxRangeNames.
Outcome<std::vector<std::string>> expand_ranges(std::string_view pattern);

}  // namespace fabric
