// Ethernet as a link layer: addresses, how IP maps to them, VLANs, and what a frame costs on the
// wire. Refuses learning and tags within tags.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>

#include "fabric/core/strong_id.hpp"
#include "fabric/net/gid.hpp"

namespace fabric {

struct MacAddress {
    std::array<std::uint8_t, 6> bytes{};

    // The group bit: multicast and broadcast (IEEE 802 8.2.2).
    [[nodiscard]] constexpr bool is_group() const { return (bytes[0] & 1U) != 0; }

    friend constexpr bool operator==(const MacAddress&, const MacAddress&) = default;
    friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) = default;
};

// Addresses of this simulation are locally administered: 02, then as make_guid() 28 bits of node
// rank + 1 and 12 bits of port number.
MacAddress make_mac(NodeId node, PortNumber port);

// VLAN ids (IEEE 802.1Q 9.6): 0 is a tag without one, 4095 is reserved.
inline constexpr std::uint16_t kFirstVlan = 1;
inline constexpr std::uint16_t kLastVlan = 4094;

// Host n is 127.77.(n div 256).(n mod 256), which is this machine's loopback too: real programs
// that exchange addresses over sockets name it alike. In the VLANs of a fabric, in the order of
// their ids, it is 127.78.x.y, 127.79.x.y and so on: `subnet` 1, 2, ...; 0 is without a VLAN.
inline constexpr std::uint32_t kMaxIpHosts = 1U << 16;
inline constexpr std::uint32_t kMaxVlanSubnets = 128;
constexpr std::uint32_t ipv4_address(NodeId host, std::uint32_t subnet = 0) {
    return 127U << 24 | (77U + subnet) << 16 | host.value();
}

// The IPv6 address that stands for an IPv4 one in a GID: ::ffff:a.b.c.d (IBA A17.4.5.2).
Gid ipv4_mapped(std::uint32_t address);
bool is_ipv4_mapped(const Gid& gid);

// fe80:: and the modified EUI-64 of a MAC address (RFC 4291, appendix A), and the way back.
Gid link_local_gid(const MacAddress& mac);
bool is_link_local(const Gid& gid);
MacAddress mac_of_link_local(const Gid& gid);

// ff00::/8 and, mapped, 224.0.0.0/4.
bool is_multicast(const Gid& gid);
// RFC 2464 section 7, RFC 1112 section 6.4.
MacAddress multicast_mac(const Gid& gid);

inline constexpr std::uint32_t kEthernetHeaderBytes = 14;
// A frame has a tag if it is in a VLAN or its priority is not 0. VLAN id 0 in it means no VLAN.
inline constexpr std::uint32_t kVlanTagBytes = 4;
inline constexpr std::uint32_t kDefaultEthernetMtu = 4200;
// The bytes of a frame besides header and data: frame check sequence; preamble, start delimiter and
// the gap before the next frame (IEEE 802.3 3.1.1, 4.4.2).
inline constexpr std::uint32_t kFrameCheckBytes = 4;
inline constexpr std::uint32_t kFrameGapBytes = 7 + 1 + 12;

// From the destination address to the end of its data: shorter frames are padded (IEEE 802.3 4A.2).
inline constexpr std::uint32_t kShortestFrameBytes = 60;

// Returns the bytes that a frame takes on the wire; `bytes` counts from the destination address to
// the end of its data.
constexpr std::uint32_t ethernet_wire_bytes(std::uint32_t bytes) {
    return std::max(bytes, kShortestFrameBytes) + kFrameCheckBytes + kFrameGapBytes;
}

}  // namespace fabric
