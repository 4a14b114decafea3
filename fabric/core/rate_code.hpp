// The codes of rates in paths and groups: PathRecord:Rate (IBA 15.2.5.16), as enum ibv_rate.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace fabric {

// `tenths`: nominal Gb/s times ten.
struct RateCode {
    std::uint32_t tenths;
    std::uint8_t code;
};
inline constexpr auto kRateCodes = std::to_array<RateCode>({
    {25, 2},    {50, 5},    {100, 3},   {140, 11},  {200, 6},   {250, 15},  {280, 19},   {300, 4},
    {400, 7},   {500, 20},  {560, 12},  {600, 8},   {800, 9},   {1000, 16}, {1120, 13},  {1200, 10},
    {1680, 14}, {2000, 17}, {3000, 18}, {4000, 21}, {6000, 22}, {8000, 23}, {12000, 24},
});

// The fastest that is no faster.
constexpr std::uint8_t rate_code_of(std::uint32_t tenths) {
    std::uint8_t code = kRateCodes.front().code;
    for (const RateCode& row : kRateCodes) {
        code = row.tenths <= tenths ? row.code : code;
    }
    return code;
}

// 0: there is no such code.
constexpr std::uint32_t tenths_of_rate_code(std::uint64_t code) {
    const auto* const found = std::ranges::find(kRateCodes, code, &RateCode::code);
    return found == kRateCodes.end() ? 0 : found->tenths;
}

}  // namespace fabric
