#include "viz/markup.hpp"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

namespace simverbs::viz {
namespace {

struct Unit {
    std::int64_t picoseconds;
    std::string_view name;
};
constexpr std::array kUnits = {Unit{1'000'000'000'000, "s"}, Unit{1'000'000'000, "ms"},
                               Unit{1'000'000, "us"}, Unit{1'000, "ns"}};

std::string with_decimals(std::int64_t whole, std::int64_t thousandths) {
    std::string text = fmt::format("{}.{:03}", whole, thousandths);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) {
        text.pop_back();
    }
    return text;
}

}  // namespace

std::string dot_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    return out + '"';
}

std::string html_label(std::string_view markup) {
    std::string out = "<";
    for (std::size_t i = 0; i < markup.size(); ++i) {
        const bool after_tag = i > 0 && markup[i - 1] == '>';
        const bool before_tag = i + 1 < markup.size() && markup[i + 1] == '<';
        if (markup[i] == ' ' && (after_tag || before_tag)) {
            out += "&#160;";
        } else {
            out += markup[i];
        }
    }
    return out + '>';
}

std::string time_text(std::int64_t picoseconds) {
    const std::int64_t size = std::abs(picoseconds);
    for (const Unit& unit : kUnits) {
        if (size >= unit.picoseconds) {
            return fmt::format("{}{} {}", picoseconds < 0 ? "-" : "",
                               with_decimals(size / unit.picoseconds,
                                             size % unit.picoseconds / (unit.picoseconds / 1000)),
                               unit.name);
        }
    }
    return fmt::format("{} ps", picoseconds);
}

std::string rate_text(std::uint64_t bits_per_second) {
    constexpr std::uint64_t kGiga = 1'000'000'000;
    constexpr std::uint64_t kMega = 1'000'000;
    if (bits_per_second >= kGiga) {
        return with_decimals(static_cast<std::int64_t>(bits_per_second / kGiga),
                             static_cast<std::int64_t>(bits_per_second % kGiga / kMega)) +
               " Gb/s";
    }
    return fmt::format("{} Mb/s", bits_per_second / kMega);
}

}  // namespace simverbs::viz
