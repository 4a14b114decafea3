// Partition keys (IBA 10.9): 15 bits that name the partition, and one that says full membership.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fabric {

inline constexpr std::uint16_t kFullMember = 0x8000;

// Returns true if two P_Keys name one partition and one of the two is a full member (IBA 10.9.3).
constexpr bool pkeys_match(std::uint16_t a, std::uint16_t b) {
    const std::uint16_t partition = a & static_cast<std::uint16_t>(~kFullMember);
    return partition != 0 && ((a ^ b) & ~kFullMember) == 0 && ((a | b) & kFullMember) != 0;
}

inline bool admits(const std::vector<std::uint16_t>& table, std::uint16_t pkey) {
    return std::any_of(table.begin(), table.end(),
                       [pkey](std::uint16_t entry) { return pkeys_match(entry, pkey); });
}

}  // namespace fabric
