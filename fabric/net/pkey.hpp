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

// Returns true if a port with this table may send `pkey`: a member of the partition may, with full
// membership only as a full member. Both sides of a packet may be limited members here; whether
// they may talk to each other is the receiver's question.
inline bool may_send(const std::vector<std::uint16_t>& table, std::uint16_t pkey) {
    const bool names_a_partition = (pkey & static_cast<std::uint16_t>(~kFullMember)) != 0;
    return names_a_partition &&
           std::any_of(table.begin(), table.end(), [pkey](std::uint16_t entry) {
               return entry == pkey || entry == (pkey | kFullMember);
           });
}

// Returns true if a port with this table takes a packet with `pkey`.
inline bool admits(const std::vector<std::uint16_t>& table, std::uint16_t pkey) {
    return std::any_of(table.begin(), table.end(),
                       [pkey](std::uint16_t entry) { return pkeys_match(entry, pkey); });
}

}  // namespace fabric
