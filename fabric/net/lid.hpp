// Local identifiers (IBA 4.1.3): 16 bits. Refuses the extended LIDs of Omni-Path.
#pragma once

#include <cstdint>

#include "fabric/core/strong_id.hpp"

namespace fabric {

using Lid = StrongId<struct LidTag, std::uint16_t>;

inline constexpr Lid kNoLid{0};
inline constexpr Lid kFirstUnicastLid{0x0001};
inline constexpr Lid kLastUnicastLid{0xBFFF};
inline constexpr Lid kFirstMulticastLid{0xC000};
inline constexpr Lid kPermissiveLid{0xFFFF};

constexpr bool is_unicast(Lid lid) {
    return lid >= kFirstUnicastLid && lid <= kLastUnicastLid;
}
constexpr bool is_multicast(Lid lid) {
    return lid >= kFirstMulticastLid && lid < kPermissiveLid;
}

}  // namespace fabric
