#include "fabric/topology/name_ranges.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/core.h>

namespace fabric {

namespace {

constexpr std::string_view kDots = "..";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::size_t digits_at(std::string_view text, std::size_t at) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    return static_cast<std::size_t>(std::find_if_not(begin, text.end(), is_digit) - begin);
}

struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::size_t width = 0;   // zeros fill up to it
    std::size_t length = 0;  // of its text
};

// A range that starts exactly at `at`.
std::optional<Range> range_at(std::string_view text, std::size_t at) {
    const std::size_t first = digits_at(text, at);
    if (first == 0 || !text.substr(at + first).starts_with(kDots)) {
        return std::nullopt;
    }
    const std::size_t second = digits_at(text, at + first + kDots.size());
    Range range;
    range.length = first + kDots.size() + second;
    range.width = text[at] == '0' ? first : 0;
    const auto read = [&text](std::size_t begin, std::size_t count, std::uint64_t& number) {
        const std::string_view digits = text.substr(begin, count);
        return std::from_chars(digits.begin(), digits.end(), number).ec == std::errc{};
    };
    const bool valid =
        read(at, first, range.first) && read(at + first + kDots.size(), second, range.last);
    return valid ? std::optional(range) : std::nullopt;
}

}  // namespace

Outcome<std::vector<std::string>> expand_ranges(std::string_view pattern) {
    std::vector<std::string> names{""};
    for (std::size_t at = 0; at < pattern.size();) {
        const bool starts_number = is_digit(pattern[at]) && (at == 0 || !is_digit(pattern[at - 1]));
        const auto range = starts_number ? range_at(pattern, at) : std::nullopt;
        if (!range) {
            for (std::string& name : names) {
                name += pattern[at];
            }
            ++at;
            continue;
        }
        if (range->last < range->first) {
            return Failure(fmt::format("\"{}\": a range counts upwards", pattern));
        }
        if (range->last - range->first >= kMaxRangeNames / names.size()) {
            return Failure(fmt::format("\"{}\": more than {} names", pattern, kMaxRangeNames));
        }
        std::vector<std::string> longer;
        for (const std::string& name : names) {
            for (std::uint64_t i = range->first; i <= range->last; ++i) {
                longer.push_back(fmt::format("{}{:0{}}", name, i, range->width));
            }
        }
        names = std::move(longer);
        at += range->length;
    }
    if (pattern.find(kDots) != std::string_view::npos && names.size() == 1 &&
        names.front().find(kDots) != std::string::npos) {
        return Failure(
            fmt::format("\"{}\": a range has a number before and after its two dots", pattern));
    }
    return names;
}

}  // namespace fabric
