// A whole file as text.
#pragma once

#include <cstddef>
#include <string>

#include "fabric/core/outcome.hpp"

namespace fabric {

inline constexpr std::size_t kMaxTextFileBytes = 64U << 20;

// Fails when it cannot be read or is larger than kMaxTextFileBytes.
Outcome<std::string> read_text_file(const std::string& path);

}  // namespace fabric
