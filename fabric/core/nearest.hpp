// Finds what a misspelled word may have meant: the candidate with the fewest changed letters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fabric {

// The first of the nearest candidates; nothing when none is near: a third of the letters differ,
// and more than two.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

// `: did you mean "latency"?`, or nothing.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace fabric
