// Writes a text as one word of a shell command (POSIX, Shell Command Language, 2.2 Quoting), for
// commands that a person is told to run.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace fabric {

// Returns `text` as it is, or in single quotes where a shell would read anything but that from it.
inline std::string shell_word(std::string_view text) {
    const auto is_plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("-_./+:,@%").find(c) != std::string_view::npos;
    };
    if (!text.empty() && std::ranges::all_of(text, is_plain)) {
        return std::string(text);
    }
    std::string quoted = "'";
    for (const char c : text) {
        quoted += c == '\'' ? std::string_view("'\\''") : std::string_view(&c, 1);
    }
    return quoted + "'";
}

}  // namespace fabric
