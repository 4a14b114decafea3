// Widths and speeds of links as ibv_port_attr encodes them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "fabric/core/rate.hpp"

namespace simverbs {

inline constexpr std::string_view kLinkRatesInWords =
    "widths are 1 (1x), 2 (4x), 4 (8x), 8 (12x), 16 (2x), speeds 1 (SDR), 2 (DDR), 4 (QDR), 8 "
    "(FDR10), 16 (FDR), 32 (EDR), 64 (HDR), 128 (NDR), 256 (XDR)";

// Nothing: a number means none.
inline std::optional<std::pair<fabric::LinkWidth, fabric::LinkSpeed>> link_rate(
    unsigned int width, unsigned int speed) {
    using fabric::LinkSpeed;
    using fabric::LinkWidth;
    constexpr auto kWidths = std::to_array(
        {LinkWidth::k1x, LinkWidth::k2x, LinkWidth::k4x, LinkWidth::k8x, LinkWidth::k12x});
    constexpr auto kSpeeds = std::to_array({LinkSpeed::kSdr, LinkSpeed::kDdr, LinkSpeed::kQdr,
                                            LinkSpeed::kFdr10, LinkSpeed::kFdr, LinkSpeed::kEdr,
                                            LinkSpeed::kHdr, LinkSpeed::kNdr, LinkSpeed::kXdr});
    const auto names = [](const auto& all, unsigned int value) {
        return std::any_of(all.begin(), all.end(),
                           [value](auto each) { return static_cast<unsigned int>(each) == value; });
    };
    if (!names(kWidths, width) || !names(kSpeeds, speed)) {
        return std::nullopt;
    }
    return std::pair{static_cast<LinkWidth>(width), static_cast<LinkSpeed>(speed)};
}

}  // namespace simverbs
