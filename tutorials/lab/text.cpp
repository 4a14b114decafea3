#include "tutorials/lab/text.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "fabric/core/utf8.hpp"

namespace simverbs::lab {

std::string wrapped(std::string_view text, std::string_view indent) {
    constexpr std::size_t kWidth = 100;
    std::istringstream words{std::string(text)};
    std::string out;
    std::string line(indent);
    for (std::string word; words >> word;) {
        if (line.size() > indent.size() && line.size() + 1 + word.size() > kWidth) {
            out += line + "\n";
            line = indent;
        }
        line += (line.size() > indent.size() ? " " : "") + word;
    }
    return out + line + "\n";
}

std::string printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t length = fabric::utf8_sequence(text);
        const auto first = static_cast<unsigned char>(text.front());
        const bool is_control = (first < ' ' && first != '\n' && first != '\t') || first == 0x7F;
        out += length == 0 || is_control ? std::string_view("?") : text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(1, length));
    }
    return out;
}

std::string first_lines(std::string_view text, std::size_t most) {
    std::istringstream lines{std::string(text)};
    std::string out;
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        if (count < most) {
            out += "  " + line + "\n";
        }
    }
    return count > most ? out + fmt::format("  ... and {} more lines\n", count - most) : out;
}

std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\n\r") == std::string_view::npos) {
        return std::string(text);
    }
    std::string out = "\"";
    for (const char c : text) {
        out += c == '"' ? "\"\"" : std::string(1, c);
    }
    return out + "\"";
}

}  // namespace simverbs::lab
