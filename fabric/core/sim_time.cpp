#include "fabric/core/sim_time.hpp"

#include <array>
#include <string_view>

#include <fmt/core.h>

namespace fabric {

namespace {
struct Unit {
    std::uint64_t picoseconds;
    std::string_view name;
};
constexpr std::array kUnits = {Unit{1'000'000'000'000, "s"}, Unit{1'000'000'000, "ms"},
                               Unit{1'000'000, "us"}, Unit{1'000, "ns"}, Unit{1, "ps"}};
}  // namespace

std::string to_string(SimDuration duration) {
    const bool negative = duration.count() < 0;
    auto magnitude = static_cast<std::uint64_t>(duration.count());
    magnitude = negative ? 0 - magnitude : magnitude;

    Unit unit = kUnits.back();
    for (const Unit& candidate : kUnits) {
        if (magnitude >= candidate.picoseconds) {
            unit = candidate;
            break;
        }
    }
    std::string text = fmt::format("{}{}", negative ? "-" : "", magnitude / unit.picoseconds);
    if (const std::uint64_t rest = magnitude % unit.picoseconds; rest != 0) {
        // The digits of `rest` with the leading zeros that the unit asks for.
        std::string digits = std::to_string(unit.picoseconds + rest);
        digits.front() = '.';
        digits.erase(digits.find_last_not_of('0') + 1);
        text += digits;
    }
    return fmt::format("{} {}", text, unit.name);
}

std::string to_string(SimTime time) {
    return to_string(time.time_since_epoch());
}

}  // namespace fabric
