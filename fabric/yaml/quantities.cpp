#include "fabric/yaml/quantities.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include <fmt/core.h>

namespace fabric::yaml {

namespace {

struct Unit {
    std::string_view name;
    std::uint64_t size;  // in the smallest
};

constexpr auto kDurations = std::to_array<Unit>({{"ps", 1},
                                                 {"ns", 1'000},
                                                 {"us", 1'000'000},
                                                 {"ms", 1'000'000'000},
                                                 {"s", 1'000'000'000'000},
                                                 {"min", 60'000'000'000'000},
                                                 {"h", 3'600'000'000'000'000}});
constexpr auto kBytes = std::to_array<Unit>({{"B", 1},
                                             {"KiB", 1ULL << 10U},
                                             {"MiB", 1ULL << 20U},
                                             {"GiB", 1ULL << 30U},
                                             {"kB", 1'000},
                                             {"MB", 1'000'000},
                                             {"GB", 1'000'000'000}});
constexpr auto kBitsPerSecond = std::to_array<Unit>({{"b/s", 1},
                                                     {"kb/s", 1'000},
                                                     {"Mb/s", 1'000'000},
                                                     {"Gb/s", 1'000'000'000},
                                                     {"Tb/s", 1'000'000'000'000}});

std::string names_of(std::span<const Unit> units) {
    std::string names;
    for (const Unit& unit : units) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", unit.name);
    }
    return names;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

struct Decimal {
    std::uint64_t digits = 0;  // without the point
    unsigned decimals = 0;
    std::string_view rest;
};

// "1.5us": 15, one decimal, "us". Nothing where no number is, or one too long.
std::optional<Decimal> take_decimal(std::string_view text) {
    Decimal decimal;
    std::size_t at = 0;
    bool point = false;
    bool any = false;
    for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && any && !point)); ++at) {
        if (text[at] == '.') {
            point = true;
            continue;
        }
        constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 10 - 1;
        if (decimal.digits > kMost) {
            return std::nullopt;
        }
        decimal.digits = decimal.digits * 10 + static_cast<std::uint64_t>(text[at] - '0');
        decimal.decimals += point ? 1 : 0;
        any = true;
    }
    if (!any || text[at - 1] == '.') {
        return std::nullopt;
    }
    decimal.rest = text.substr(at);
    return decimal;
}

Outcome<std::uint64_t> parse_quantity(std::string_view text, std::string_view what,
                                      std::span<const Unit> units, std::uint64_t most) {
    const auto decimal = take_decimal(text);
    if (!decimal) {
        return Failure(fmt::format("\"{}\": expected {}: a number and a unit, of {}", text, what,
                                   names_of(units)));
    }
    std::string_view name = decimal->rest;
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    if (name.empty()) {
        return Failure(fmt::format("\"{}\": {} needs a unit, of {}", text, what, names_of(units)));
    }
    const auto unit = std::find_if(units.begin(), units.end(),
                                   [name](const Unit& one) { return one.name == name; });
    if (unit == units.end()) {
        return Failure(fmt::format("\"{}\": no unit of {} is called \"{}\": use {}", text, what,
                                   name, names_of(units)));
    }
    __extension__ using Wide = unsigned __int128;
    Wide scaled = static_cast<Wide>(decimal->digits) * unit->size;
    for (unsigned i = 0; i < decimal->decimals; ++i) {
        if (scaled % 10 != 0) {
            return Failure(
                fmt::format("\"{}\": {} is a whole number of {}", text, what, units.front().name));
        }
        scaled /= 10;
    }
    if (scaled > most) {
        return Failure(fmt::format("\"{}\": {} is too large", text, what));
    }
    return static_cast<std::uint64_t>(scaled);
}

// The largest unit that needs no decimals.
std::string text_of(std::uint64_t value, std::span<const Unit> units) {
    const Unit* best = &units.front();
    for (const Unit& unit : units) {
        if (value != 0 && value % unit.size == 0 && unit.size > best->size) {
            best = &unit;
        }
    }
    return fmt::format("{}{}", value / best->size, best->name);
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
    const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    text.remove_prefix(is_hexadecimal ? 2 : 0);
    const char* const end = text.data() + text.size();
    std::uint64_t number = 0;
    const auto [stopped, status] =
        std::from_chars(text.data(), end, number, is_hexadecimal ? 16 : 10);
    return status == std::errc{} && stopped == end ? std::optional(number) : std::nullopt;
}

Outcome<SimDuration> parse_duration(std::string_view text) {
    const auto parsed =
        parse_quantity(text, "a duration", kDurations, std::numeric_limits<std::int64_t>::max());
    if (!parsed) {
        return Failure(parsed.error());
    }
    return SimDuration(static_cast<std::int64_t>(*parsed));
}

Outcome<std::uint64_t> parse_bytes(std::string_view text) {
    return parse_quantity(text, "a size", kBytes, std::numeric_limits<std::int64_t>::max());
}

Outcome<std::uint64_t> parse_bits_per_second(std::string_view text) {
    return parse_quantity(text, "a rate", kBitsPerSecond, std::numeric_limits<std::int64_t>::max());
}

std::string link_rate_names() {
    std::string names = "widths are";
    for (const LinkWidthProperties& row : kLinkWidths) {
        names += fmt::format(" {}", row.name);
    }
    names += ", speeds";
    for (const LinkSpeedProperties& row : kLinkSpeeds) {
        names += fmt::format(" {}", row.name);
    }
    return names;
}

Outcome<LinkRate> parse_link_rate(std::string_view text) {
    constexpr std::string_view kRule =
        "expected a width and a speed, such as \"4x EDR\", or the data rate of one, such as "
        "\"100Gb/s\"";
    const std::size_t times = text.find('x');
    if (times != std::string_view::npos) {
        std::string_view name = text.substr(times + 1);
        name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
        for (const LinkWidthProperties& width : kLinkWidths) {
            for (const LinkSpeedProperties& speed : kLinkSpeeds) {
                if (width.name == text.substr(0, times + 1) && speed.name == name) {
                    return LinkRate{width.width, speed.speed};
                }
            }
        }
        return Failure(fmt::format("\"{}\": {}; {}", text, kRule, link_rate_names()));
    }
    const auto bits = parse_bits_per_second(text);
    if (!bits) {
        return Failure(bits.error() + " (or a width and a speed: \"4x EDR\")");
    }
    for (const LinkWidth width :
         {LinkWidth::k4x, LinkWidth::k1x, LinkWidth::k2x, LinkWidth::k8x, LinkWidth::k12x}) {
        for (const LinkSpeedProperties& row : kLinkSpeeds) {
            if (effective_rate(width, row.speed).bits_per_second() == *bits) {
                return LinkRate{width, row.speed};
            }
        }
    }
    return Failure(fmt::format("\"{}\": no width and speed have this data rate: {}", text, kRule));
}

std::string duration_text(SimDuration duration) {
    return text_of(static_cast<std::uint64_t>(duration.count()), std::span(kDurations).first(5));
}

std::string bytes_text(std::uint64_t bytes) {
    return text_of(bytes, std::span(kBytes).first(4));
}

std::string link_rate_text(LinkRate rate) {
    return fmt::format("{} {}", to_string(rate.width), to_string(rate.speed));
}

std::string spoken_rate(LinkRate rate, bool is_ethernet) {
    constexpr std::uint64_t kMega = 1'000'000;
    constexpr std::uint64_t kGiga = 1'000'000'000;
    if (!is_ethernet) {
        return link_rate_text(rate);
    }
    const std::uint64_t bits = effective_rate(rate.width, rate.speed).bits_per_second();
    return bits % kGiga == 0 ? fmt::format("{} Gb/s", bits / kGiga)
                             : fmt::format("{} Mb/s", bits / kMega);
}

}  // namespace fabric::yaml
