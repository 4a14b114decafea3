// The bits by which PortInfo names widths and speeds of links (IBA 14.2.5.6).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "fabric/core/rate.hpp"

namespace fabric {

// PortInfo:LinkSpeed* up to QDR and LinkSpeedExt* from FDR on (IBA 14.2.5.6). FDR10 is a vendor's,
// and newer speeds than NDR have no bit here: both show as the fastest that is described.
struct SpeedBits {
    LinkSpeed speed;
    std::uint8_t base;
    std::uint8_t extended;
};
inline constexpr auto kSpeedBits = std::to_array<SpeedBits>({
    {LinkSpeed::kSdr, 1, 0},
    {LinkSpeed::kDdr, 2, 0},
    {LinkSpeed::kQdr, 4, 0},
    {LinkSpeed::kFdr10, 4, 0},
    {LinkSpeed::kFdr, 4, 1},
    {LinkSpeed::kEdr, 4, 2},
    {LinkSpeed::kHdr, 4, 4},
    {LinkSpeed::kNdr, 4, 8},
    {LinkSpeed::kXdr, 4, 8},
});

inline const SpeedBits& bits_of(LinkSpeed speed) {
    return *std::find_if(kSpeedBits.begin(), kSpeedBits.end(),
                         [speed](const SpeedBits& row) { return row.speed == speed; });
}

// All speeds up to `fastest`.
inline std::uint8_t base_up_to(LinkSpeed fastest) {
    return static_cast<std::uint8_t>(2U * bits_of(fastest).base - 1);
}
inline std::uint8_t extended_up_to(LinkSpeed fastest) {
    const unsigned bits = bits_of(fastest).extended;
    return static_cast<std::uint8_t>(bits == 0 ? 0 : 2U * bits - 1);
}
inline std::uint8_t widths_up_to(LinkWidth widest) {
    unsigned bits = 0;
    for (const LinkWidthProperties& row : kLinkWidths) {
        // 2x and 8x are options that a port of another width does not have.
        const bool is_usual = row.lanes == 1 || row.lanes == 4 || row.lanes == 12;
        if (row.width == widest || (is_usual && row.lanes < properties(widest).lanes)) {
            bits |= static_cast<unsigned>(row.width);
        }
    }
    return static_cast<std::uint8_t>(bits);
}

}  // namespace fabric
