// The headers of an Ethernet frame that somebody made by hand: as much as flow rules match and
// checksums cover. Refuses VLAN tags, IPv6 extension headers and fragments beyond the first: what
// lies behind them is not looked at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "simverbs/model/enum_set.hpp"

namespace simverbs {

enum class FrameLayer : std::uint8_t {
    kEthernet = 1U << 0,
    kIpv4 = 1U << 1,
    kIpv6 = 1U << 2,
    kTcp = 1U << 3,
    kUdp = 1U << 4,
};
template <>
inline constexpr bool kIsSetMember<FrameLayer> = true;
using FrameLayers = EnumSet<FrameLayer>;

// Fields in the order of the wire, byte by byte, so that a mask is one more of these.
struct FrameFields {
    std::array<std::uint8_t, 6> destination_mac{};
    std::array<std::uint8_t, 6> source_mac{};
    std::array<std::uint8_t, 2> ether_type{};
    std::array<std::uint8_t, 4> ipv4_source{};
    std::array<std::uint8_t, 4> ipv4_destination{};
    std::uint8_t ipv4_protocol = 0;
    std::uint8_t ipv4_tos = 0;
    std::uint8_t ipv4_ttl = 0;
    std::array<std::uint8_t, 16> ipv6_source{};
    std::array<std::uint8_t, 16> ipv6_destination{};
    std::array<std::uint8_t, 4> ipv6_flow_label{};  // 20 bits
    std::uint8_t ipv6_next_header = 0;
    std::uint8_t ipv6_traffic_class = 0;
    std::uint8_t ipv6_hop_limit = 0;
    std::array<std::uint8_t, 2> source_port{};
    std::array<std::uint8_t, 2> destination_port{};
};
static_assert(std::has_unique_object_representations_v<FrameFields>, "matched as bytes");

struct FrameHeaders {
    FrameLayers layers;
    FrameFields fields;
};

FrameHeaders parse_frame(std::span<const std::byte> frame);

// Whether all bits of `value` that `mask` selects are those of `fields`.
bool fields_match(const FrameFields& fields, const FrameFields& value, const FrameFields& mask);

// Whether these are the headers of an Ethernet frame up to and including TCP, and nothing else.
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
// Whether there is an IPv4 header and it, and the TCP or UDP behind it, are sound
// (IBV_WC_IP_CSUM_OK).
bool checksums_hold(std::span<const std::byte> frame);

}  // namespace simverbs
