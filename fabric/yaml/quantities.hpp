// Quantities as people write them: a number, with decimals or without, and a unit. Exact: what is
// no whole number of the smallest unit is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/core/outcome.hpp"
#include "fabric/core/rate.hpp"
#include "fabric/core/sim_time.hpp"

namespace fabric::yaml {

// A whole number in decimal, or in hexadecimal with "0x"; nothing where the text is none.
std::optional<std::uint64_t> parse_number(std::string_view text);

// Each: the value, or why the text is none.
Outcome<SimDuration> parse_duration(std::string_view text);           // "500ns", "1.5 us"
Outcome<std::uint64_t> parse_bytes(std::string_view text);            // "4096B", "64KiB", "1.5 MB"
Outcome<std::uint64_t> parse_bits_per_second(std::string_view text);  // "100Gb/s"

struct LinkRate {
    LinkWidth width;
    LinkSpeed speed;

    friend bool operator==(const LinkRate&, const LinkRate&) = default;
};

// "4x EDR", or a data rate that some width and speed give exactly, four lanes preferred: "100Gb/s".
Outcome<LinkRate> parse_link_rate(std::string_view text);
// "widths are 1x 2x ..., speeds SDR DDR ...": all that there are.
std::string link_rate_names();

// The shortest that reads back: in the largest unit that needs no decimals.
std::string duration_text(SimDuration duration);
std::string bytes_text(std::uint64_t bytes);
std::string link_rate_text(LinkRate rate);
// As people call it: "4x EDR" on InfiniBand, the data rate on Ethernet: "100 Gb/s".
std::string spoken_rate(LinkRate rate, bool is_ethernet);

}  // namespace fabric::yaml
