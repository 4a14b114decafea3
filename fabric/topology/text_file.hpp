// A whole file as text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace fabric {

inline constexpr std::size_t kMaxTextFileBytes = 64U << 20;

// Nothing, and `error` set, when it cannot be read or is larger than kMaxTextFileBytes.
std::optional<std::string> read_text_file(const std::string& path, std::string& error);

}  // namespace fabric
