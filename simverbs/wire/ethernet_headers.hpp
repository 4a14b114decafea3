// The headers of an Ethernet frame that somebody made by hand: as much as flow rules match and
// checksums cover, and the same of a frame or packet within a tunnel (VXLAN, GRE).
//
// Refuses IPv6 extension headers, fragments beyond the first, more than two VLAN tags and what an
// MPLS stack carries: what lies behind them is not looked at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "simverbs/model/enum_set.hpp"

namespace simverbs {

enum class FrameLayer : std::uint32_t {
    kEthernet = 1U << 0,
    kIpv4 = 1U << 1,
    kIpv6 = 1U << 2,
    kTcp = 1U << 3,
    kUdp = 1U << 4,
    kEsp = 1U << 5,
    kMpls = 1U << 6,   // behind the Ethernet header
    kCvlan = 1U << 7,  // the first tag is a customer VLAN's
    kVxlan = 1U << 8,
    kGre = 1U << 9,
    kGreKey = 1U << 10,
    kMplsOverUdp = 1U << 11,
    kMplsOverGre = 1U << 12,
};
template <>
inline constexpr bool kIsSetMember<FrameLayer> = true;
using FrameLayers = EnumSet<FrameLayer>;

// The same layers within a tunnel; of those up to kCvlan.
constexpr FrameLayers inner(FrameLayers layers) {
    constexpr unsigned kInnerShift = 16;
    return FrameLayers::from_bits(layers.bits << kInnerShift);
}

// Fields in the order of the wire, byte by byte, so that a mask is one more of these.
struct HeaderFields {
    std::array<std::uint8_t, 6> destination_mac{};
    std::array<std::uint8_t, 6> source_mac{};
    std::array<std::uint8_t, 2> cvlan_tag{};   // priority, DEI, VLAN id
    std::array<std::uint8_t, 2> ether_type{};  // behind the tags
    std::array<std::uint8_t, 4> mpls_entry{};  // the top of the stack: label, class, bottom, TTL
    std::array<std::uint8_t, 4> ipv4_source{};
    std::array<std::uint8_t, 4> ipv4_destination{};
    std::uint8_t ipv4_protocol = 0;
    std::uint8_t ipv4_tos = 0;
    std::uint8_t ipv4_ttl = 0;
    std::uint8_t ipv4_flags = 0;  // enum ib_ipv4_flags of Linux: 2 DF, 4 MF
    std::array<std::uint8_t, 16> ipv6_source{};
    std::array<std::uint8_t, 16> ipv6_destination{};
    std::array<std::uint8_t, 4> ipv6_flow_label{};  // 20 bits
    std::uint8_t ipv6_next_header = 0;
    std::uint8_t ipv6_traffic_class = 0;
    std::uint8_t ipv6_hop_limit = 0;
    std::array<std::uint8_t, 2> source_port{};
    std::array<std::uint8_t, 2> destination_port{};
    std::array<std::uint8_t, 4> esp_spi{};
    std::array<std::uint8_t, 4> esp_sequence{};
};

struct TunnelFields {
    std::array<std::uint8_t, 4> vxlan_vni{};  // 24 bits
    std::array<std::uint8_t, 2> gre_flags{};  // the first two bytes of its header
    std::array<std::uint8_t, 2> gre_protocol{};
    std::array<std::uint8_t, 4> gre_key{};
    std::array<std::uint8_t, 4> mpls_entry{};  // over UDP or GRE
};

struct FrameFields {
    HeaderFields outer;
    TunnelFields tunnel;
    HeaderFields inner;
};
static_assert(std::has_unique_object_representations_v<FrameFields>, "matched as bytes");

struct FrameHeaders {
    FrameLayers layers;
    FrameFields fields;
};

FrameHeaders parse_frame(std::span<const std::byte> frame);

// Returns true if all bits of `value` that `mask` selects are those of `fields`.
bool fields_match(const FrameFields& fields, const FrameFields& value, const FrameFields& mask);

// How long the Ethernet header of a frame is with its VLAN tags; of a frame that has one.
inline constexpr std::uint32_t kMaxEthernetHeaderBytes = 14 + 2 * 4;
std::uint32_t ethernet_header_bytes(std::span<const std::byte> frame);

// The customer VLAN tag (IEEE 802.1Q, type 0x8100) that comes first in a frame: its priority, DEI
// and VLAN id as a number. It takes the bytes kCvlanOffset to kCvlanOffset + kCvlanBytes.
inline constexpr std::uint32_t kCvlanOffset = 12;
inline constexpr std::uint32_t kCvlanBytes = 4;
std::optional<std::uint16_t> cvlan_of(std::span<const std::byte> frame);

// The frame check sequence as it follows a frame on the wire (IEEE 802.3 3.2.9).
inline constexpr std::uint32_t kFcsBytes = 4;
std::array<std::byte, kFcsBytes> frame_check_sequence(std::span<const std::byte> frame);

// Returns true if these are the headers of an Ethernet frame up to and including TCP, and nothing
// else.
bool is_tcp_header(std::span<const std::byte> header);
// One of the frames that a TCP stream is cut into.
struct TcpPart {
    std::uint32_t number = 0;  // counted from 0
    std::uint32_t offset = 0;  // of its data in the stream
    std::uint32_t length = 0;
    bool is_last = true;
};
// Makes the header of the whole that of a part: lengths, identification, sequence number, and the
// flags that belong to the first or last alone. Checksums stay as they are.
void adjust_tcp_header(std::span<std::byte> header, const TcpPart& part);

// Writes the checksums of the IPv4 header, and of TCP or UDP over IPv4; other frames are left alone
// (IBV_SEND_IP_CSUM). A fragment has no checksum of its own.
void fill_checksums(std::span<std::byte> frame);
// Returns true if there is an IPv4 header and it, and the TCP or UDP behind it, are sound
// (IBV_WC_IP_CSUM_OK).
bool checksums_hold(std::span<const std::byte> frame);

}  // namespace simverbs
