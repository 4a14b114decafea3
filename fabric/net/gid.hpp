// Global identifiers: 64-bit GUIDs and 128-bit GIDs (IBA 4.1.1).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "fabric/core/strong_id.hpp"

namespace fabric {

using Guid = StrongId<struct GuidTag, std::uint64_t>;

// GUIDs of this simulation are locally administered EUI-64s (bit 1 of the first octet): no
// vendor's. 02:53:56, then 28 bits of node rank + 1, then 12 bits of port number (0: the node
// itself).
constexpr Guid make_guid(NodeId node, PortNumber port) {
    constexpr std::uint64_t kLocalPrefix = 0x0253'5600'0000'0000U;
    return Guid(kLocalPrefix | (static_cast<std::uint64_t>(node.value()) + 1) << 12 | port.value());
}

// In the order of the wire: bytes[0] is sent first.
struct Gid {
    std::array<std::uint8_t, 16> bytes{};

    friend constexpr bool operator==(const Gid&, const Gid&) = default;
    friend constexpr auto operator<=>(const Gid&, const Gid&) = default;

    [[nodiscard]] std::uint64_t subnet_prefix() const;
    [[nodiscard]] std::uint64_t interface_id() const;
};

inline constexpr std::uint64_t kDefaultSubnetPrefix = 0xFE80'0000'0000'0000U;  // fe80::/64

Gid make_gid(std::uint64_t subnet_prefix, Guid guid);

// How packets from a GID travel; the values of enum ibv_gid_type.
enum class GidType : std::uint8_t {
    kInfiniband = 0,  // LRH, and GRH where asked for
    kRoceV1 = 1,      // Ethernet and GRH (IBA A16)
    kRoceV2 = 2,      // Ethernet, IP and UDP (IBA A17)
};

// An entry of a port's GID table.
struct GidEntry {
    Gid gid;
    GidType type = GidType::kInfiniband;
    std::uint16_t vlan = 0;  // of the interface that has the address; 0: the untagged one
};

// As an IPv6 address, compressed: "fe80::253:5600:0:1001".
std::string to_string(const Gid& gid);

}  // namespace fabric
