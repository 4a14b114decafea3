#include "simverbs/wire/ethernet_headers.hpp"

#include <algorithm>
#include <optional>

#include <libdeflate.h>

namespace simverbs {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::uint16_t kEtherTypeCvlan = 0x8100;
constexpr std::uint16_t kEtherTypeSvlan = 0x88A8;
constexpr std::uint16_t kEtherTypeMpls = 0x8847;
constexpr std::uint16_t kEtherTypeMplsUpstream = 0x8848;
constexpr std::uint16_t kEtherTypeBridging = 0x6558;  // Ethernet in GRE (RFC 1701)
constexpr std::uint8_t kProtocolTcp = 6;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kProtocolGre = 47;
constexpr std::uint8_t kProtocolEsp = 50;
constexpr std::uint16_t kPortVxlan = 4789;  // RFC 7348
constexpr std::uint16_t kPortMpls = 6635;   // RFC 7510

using Bytes = std::span<const std::byte>;

std::uint8_t byte_at(Bytes bytes, std::size_t offset) {
    return static_cast<std::uint8_t>(bytes[offset]);
}

std::uint16_t word_at(Bytes bytes, std::size_t offset) {
    return static_cast<std::uint16_t>(byte_at(bytes, offset) << 8 | byte_at(bytes, offset + 1));
}

template <std::size_t N>
void take(Bytes bytes, std::size_t offset, std::array<std::uint8_t, N>& field) {
    for (std::size_t i = 0; i < N; ++i) {
        field[i] = byte_at(bytes, offset + i);
    }
}

// The type in the Ethernet header of the layer above it.
struct EtherType {
    std::uint16_t value;
    std::size_t behind;  // where that layer begins
};

EtherType ether_type_of(Bytes frame) {
    constexpr std::size_t kMaxTags = 2;
    const auto is_tag = [](std::uint16_t type) {
        return type == kEtherTypeCvlan || type == kEtherTypeSvlan;
    };
    std::size_t at = kCvlanOffset;
    for (std::size_t tags = 0;
         tags < kMaxTags && is_tag(word_at(frame, at)) && frame.size() >= at + kCvlanBytes + 2;
         ++tags) {
        at += kCvlanBytes;
    }
    return {word_at(frame, at), at + 2};
}

// An IPv4 packet within a frame, as far as its lengths can be believed.
struct Ipv4 {
    std::size_t offset = 0;  // of its header in the frame
    Bytes header;
    Bytes payload;  // without what pads the frame
    std::uint8_t protocol = 0;
    bool fragment = false;  // one of several
    bool first = true;      // begins with the header of the layer above
};

std::optional<Ipv4> ipv4_at(Bytes frame, std::size_t offset) {
    const Bytes packet = frame.subspan(offset);
    if (packet.size() < kIpv4Bytes) {
        return std::nullopt;
    }
    const std::size_t header = std::size_t{byte_at(packet, 0) & 0x0FU} * 4;
    const std::size_t total = word_at(packet, 2);
    if (byte_at(packet, 0) >> 4 != 4 || header < kIpv4Bytes || total < header ||
        total > packet.size()) {
        return std::nullopt;
    }
    constexpr unsigned kMoreFragments = 0x2000;
    constexpr unsigned kFragmentOffset = 0x1FFF;
    const unsigned fragment = word_at(packet, 6);
    return Ipv4{offset,
                packet.first(header),
                packet.subspan(header, total - header),
                byte_at(packet, 9),
                (fragment & (kMoreFragments | kFragmentOffset)) != 0,
                (fragment & kFragmentOffset) == 0};
}

std::optional<Ipv4> ipv4_in(Bytes frame) {
    if (frame.size() < kEthernetBytes) {
        return std::nullopt;
    }
    const EtherType type = ether_type_of(frame);
    return type.value == kEtherTypeIpv4 ? ipv4_at(frame, type.behind) : std::nullopt;
}

// The internet checksum's sum (RFC 1071), not yet folded.
std::uint64_t sum_of(Bytes bytes) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
        sum += word_at(bytes, i);
    }
    return bytes.size() % 2 == 0 ? sum
                                 : sum + (std::uint64_t{byte_at(bytes, bytes.size() - 1)} << 8);
}

std::uint16_t folded(std::uint64_t sum) {
    while (sum >> 16 != 0) {
        sum = (sum & 0xFFFFU) + (sum >> 16);
    }
    return static_cast<std::uint16_t>(sum);
}

// Addresses, protocol and length that TCP and UDP cover besides themselves (RFC 9293, RFC 768).
std::uint64_t pseudo_header(const Ipv4& packet) {
    return sum_of(packet.header.subspan(12, 8)) + packet.protocol + packet.payload.size();
}

// Where the checksum of the layer above lies in the payload; nothing where it has none here.
std::optional<std::size_t> checksum_offset(const Ipv4& packet) {
    constexpr std::size_t kTcpHeader = 20;
    constexpr std::size_t kUdpHeader = 8;
    if (packet.fragment) {
        return std::nullopt;
    }
    if (packet.protocol == kProtocolTcp && packet.payload.size() >= kTcpHeader) {
        return 16;
    }
    if (packet.protocol == kProtocolUdp && packet.payload.size() >= kUdpHeader) {
        return 6;
    }
    return std::nullopt;
}

void put_word(std::span<std::byte> frame, std::size_t offset, std::uint16_t value) {
    frame[offset] = static_cast<std::byte>(value >> 8);
    frame[offset + 1] = static_cast<std::byte>(value & 0xFFU);
}

// The headers of one level, and what they carry where that may be a tunnel.
struct Level {
    HeaderFields& fields;
    FrameLayers layers;
    Bytes udp_payload;
    Bytes gre;  // from its header on
};

void add_layer(FrameLayers& layers, FrameLayers layer) {
    layers = layers | layer;
}

void take_transport(Bytes packet, std::uint8_t protocol, Level& level) {
    constexpr std::size_t kPortsBytes = 4;
    constexpr std::size_t kUdpBytes = 8;
    constexpr std::size_t kEspBytes = 8;
    if (protocol == kProtocolTcp || protocol == kProtocolUdp) {
        const bool udp = protocol == kProtocolUdp;
        if (packet.size() < kPortsBytes) {
            return;
        }
        add_layer(level.layers, udp ? FrameLayer::kUdp : FrameLayer::kTcp);
        take(packet, 0, level.fields.source_port);
        take(packet, 2, level.fields.destination_port);
        if (udp && packet.size() >= kUdpBytes) {
            level.udp_payload = packet.subspan(kUdpBytes);
        }
    } else if (protocol == kProtocolEsp && packet.size() >= kEspBytes) {
        add_layer(level.layers, FrameLayer::kEsp);
        take(packet, 0, level.fields.esp_spi);
        take(packet, 4, level.fields.esp_sequence);
    } else if (protocol == kProtocolGre) {
        level.gre = packet;
    }
}

void take_ipv4(Bytes packet, Level& level) {
    constexpr unsigned kDontFragment = 0x40;
    constexpr unsigned kMoreFragments = 0x20;
    const std::optional<Ipv4> ipv4 = ipv4_at(packet, 0);
    if (!ipv4) {
        return;
    }
    HeaderFields& fields = level.fields;
    add_layer(level.layers, FrameLayer::kIpv4);
    take(ipv4->header, 12, fields.ipv4_source);
    take(ipv4->header, 16, fields.ipv4_destination);
    fields.ipv4_protocol = ipv4->protocol;
    fields.ipv4_tos = byte_at(ipv4->header, 1);
    fields.ipv4_ttl = byte_at(ipv4->header, 8);
    const unsigned flags = byte_at(ipv4->header, 6);
    fields.ipv4_flags = static_cast<std::uint8_t>(((flags & kDontFragment) != 0 ? 2U : 0U) |
                                                  ((flags & kMoreFragments) != 0 ? 4U : 0U));
    if (ipv4->first) {
        take_transport(ipv4->payload, ipv4->protocol, level);
    }
}

void take_ipv6(Bytes packet, Level& level) {
    if (packet.size() < kIpv6Bytes) {
        return;
    }
    HeaderFields& fields = level.fields;
    add_layer(level.layers, FrameLayer::kIpv6);
    take(packet, 8, fields.ipv6_source);
    take(packet, 24, fields.ipv6_destination);
    take(packet, 0, fields.ipv6_flow_label);
    fields.ipv6_traffic_class = static_cast<std::uint8_t>(word_at(packet, 0) >> 4);
    fields.ipv6_flow_label[0] = 0;
    fields.ipv6_flow_label[1] &= 0x0FU;
    fields.ipv6_next_header = byte_at(packet, 6);
    fields.ipv6_hop_limit = byte_at(packet, 7);
    take_transport(packet.subspan(kIpv6Bytes), fields.ipv6_next_header, level);
}

bool is_mpls(std::uint16_t ether_type) {
    return ether_type == kEtherTypeMpls || ether_type == kEtherTypeMplsUpstream;
}

template <std::size_t N>
bool take_mpls(Bytes stack, std::array<std::uint8_t, N>& entry) {
    if (stack.size() < N) {
        return false;
    }
    take(stack, 0, entry);
    return true;
}

void take_network(std::uint16_t ether_type, Bytes packet, Level& level) {
    if (ether_type == kEtherTypeIpv4) {
        take_ipv4(packet, level);
    } else if (ether_type == kEtherTypeIpv6) {
        take_ipv6(packet, level);
    } else if (is_mpls(ether_type) && take_mpls(packet, level.fields.mpls_entry)) {
        add_layer(level.layers, FrameLayer::kMpls);
    }
}

void take_ethernet(Bytes frame, Level& level) {
    if (frame.size() < kEthernetBytes) {
        return;
    }
    add_layer(level.layers, FrameLayer::kEthernet);
    take(frame, 0, level.fields.destination_mac);
    take(frame, 6, level.fields.source_mac);
    const EtherType type = ether_type_of(frame);
    take(frame, type.behind - 2, level.fields.ether_type);
    if (cvlan_of(frame)) {
        add_layer(level.layers, FrameLayer::kCvlan);
        take(frame, kCvlanOffset + 2, level.fields.cvlan_tag);
    }
    take_network(type.value, frame.subspan(type.behind), level);
}

// RFC 7348 section 5: a VNI that is valid, and an Ethernet frame.
void take_vxlan(Bytes packet, FrameHeaders& headers, Level& carried) {
    constexpr std::size_t kVxlanBytes = 8;
    constexpr unsigned kHasVni = 0x08;
    if (packet.size() < kVxlanBytes || (byte_at(packet, 0) & kHasVni) == 0) {
        return;
    }
    add_layer(headers.layers, FrameLayer::kVxlan);
    take(packet, 3, headers.fields.tunnel.vxlan_vni);
    headers.fields.tunnel.vxlan_vni[0] = 0;  // a reserved byte
    take_ethernet(packet.subspan(kVxlanBytes), carried);
}

// RFC 2784, RFC 2890. Version 1, which is PPTP's, carries nothing that is looked at.
void take_gre(Bytes packet, FrameHeaders& headers, Level& carried) {
    constexpr std::size_t kFixedBytes = 4;
    constexpr std::size_t kOptionBytes = 4;
    constexpr unsigned kChecksum = 0x8000;
    constexpr unsigned kRouting = 0x4000;
    constexpr unsigned kKey = 0x2000;
    constexpr unsigned kSequence = 0x1000;
    constexpr unsigned kVersion = 0x0007;
    if (packet.size() < kFixedBytes) {
        return;
    }
    TunnelFields& fields = headers.fields.tunnel;
    add_layer(headers.layers, FrameLayer::kGre);
    take(packet, 0, fields.gre_flags);
    take(packet, 2, fields.gre_protocol);
    const unsigned flags = word_at(packet, 0);
    const std::uint16_t protocol = word_at(packet, 2);
    std::size_t at = kFixedBytes + ((flags & kChecksum) != 0 ? kOptionBytes : 0);
    if ((flags & kRouting) != 0) {
        return;
    }
    if ((flags & kKey) != 0) {
        if (packet.size() < at + kOptionBytes) {
            return;
        }
        add_layer(headers.layers, FrameLayer::kGreKey);
        take(packet, at, fields.gre_key);
        at += kOptionBytes;
    }
    at += (flags & kSequence) != 0 ? kOptionBytes : 0;
    if ((flags & kVersion) != 0 || packet.size() < at) {
        return;
    }
    if (protocol == kEtherTypeBridging) {
        take_ethernet(packet.subspan(at), carried);
    } else if (is_mpls(protocol) && take_mpls(packet.subspan(at), fields.mpls_entry)) {
        add_layer(headers.layers, FrameLayer::kMplsOverGre);
    } else if (!is_mpls(protocol)) {
        take_network(protocol, packet.subspan(at), carried);
    }
}

void take_tunnel(const Level& outer, FrameHeaders& headers) {
    Level carried{headers.fields.inner, {}, {}, {}};
    const std::uint16_t port = static_cast<std::uint16_t>(outer.fields.destination_port[0] << 8 |
                                                          outer.fields.destination_port[1]);
    if (!outer.gre.empty()) {
        take_gre(outer.gre, headers, carried);
    } else if (port == kPortVxlan) {
        take_vxlan(outer.udp_payload, headers, carried);
    } else if (port == kPortMpls &&
               take_mpls(outer.udp_payload, headers.fields.tunnel.mpls_entry)) {
        add_layer(headers.layers, FrameLayer::kMplsOverUdp);
    }
    add_layer(headers.layers, inner(carried.layers));
}

}  // namespace

FrameHeaders parse_frame(Bytes frame) {
    FrameHeaders headers;
    Level outer{headers.fields.outer, {}, {}, {}};
    take_ethernet(frame, outer);
    headers.layers = outer.layers;
    take_tunnel(outer, headers);
    return headers;
}

std::uint32_t ethernet_header_bytes(Bytes frame) {
    return static_cast<std::uint32_t>(ether_type_of(frame).behind);
}

std::optional<std::uint16_t> cvlan_of(Bytes frame) {
    if (frame.size() < kEthernetBytes + kCvlanBytes ||
        word_at(frame, kCvlanOffset) != kEtherTypeCvlan) {
        return std::nullopt;
    }
    return word_at(frame, kCvlanOffset + 2);
}

std::array<std::byte, kFcsBytes> frame_check_sequence(Bytes frame) {
    const std::uint32_t crc = libdeflate_crc32(0, frame.data(), frame.size());
    std::array<std::byte, kFcsBytes> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(crc >> (8 * i) & 0xFFU);  // low byte first
    }
    return bytes;
}

bool fields_match(const FrameFields& fields, const FrameFields& value, const FrameFields& mask) {
    const auto* have = reinterpret_cast<const std::uint8_t*>(&fields);
    const auto* want = reinterpret_cast<const std::uint8_t*>(&value);
    const auto* selected = reinterpret_cast<const std::uint8_t*>(&mask);
    for (std::size_t i = 0; i < sizeof(FrameFields); ++i) {
        if (((have[i] ^ want[i]) & selected[i]) != 0) {
            return false;
        }
    }
    return true;
}

void fill_checksums(std::span<std::byte> frame) {
    const std::optional<Ipv4> ipv4 = ipv4_in(frame);
    if (!ipv4) {
        return;
    }
    const std::size_t ip_checksum = ipv4->offset + 10;
    put_word(frame, ip_checksum, 0);
    put_word(frame, ip_checksum, static_cast<std::uint16_t>(~folded(sum_of(ipv4->header))));
    if (const std::optional<std::size_t> offset = checksum_offset(*ipv4)) {
        const std::size_t place = ipv4->offset + ipv4->header.size() + *offset;
        put_word(frame, place, 0);
        const auto sum =
            static_cast<std::uint16_t>(~folded(pseudo_header(*ipv4) + sum_of(ipv4->payload)));
        // A UDP checksum of 0 would say that there is none.
        put_word(frame, place, sum == 0 && ipv4->protocol == kProtocolUdp ? 0xFFFF : sum);
    }
}

bool checksums_hold(Bytes frame) {
    constexpr std::uint16_t kSound = 0xFFFF;
    const std::optional<Ipv4> ipv4 = ipv4_in(frame);
    if (!ipv4 || folded(sum_of(ipv4->header)) != kSound) {
        return false;
    }
    const std::optional<std::size_t> offset = checksum_offset(*ipv4);
    if (!offset) {
        return true;
    }
    const bool unused = ipv4->protocol == kProtocolUdp && word_at(ipv4->payload, *offset) == 0;
    return unused || folded(pseudo_header(*ipv4) + sum_of(ipv4->payload)) == kSound;
}

namespace {

// The length of the network header that begins `at`; 0 where it is neither IPv4 nor IPv6, or cut.
std::size_t network_bytes(Bytes header, const EtherType& type) {
    if (type.value == kEtherTypeIpv4 && header.size() >= type.behind + kIpv4Bytes) {
        const std::size_t bytes = std::size_t{byte_at(header, type.behind) & 0x0FU} * 4;
        return bytes < kIpv4Bytes ? 0 : bytes;
    }
    const bool ipv6 = type.value == kEtherTypeIpv6 && header.size() >= type.behind + kIpv6Bytes;
    return ipv6 ? kIpv6Bytes : 0;
}

}  // namespace

bool is_tcp_header(Bytes header) {
    constexpr std::size_t kTcpBytes = 20;
    if (header.size() < kEthernetBytes) {
        return false;
    }
    const EtherType type = ether_type_of(header);
    const std::size_t network = network_bytes(header, type);
    if (network == 0) {
        return false;
    }
    const std::size_t protocol = type.behind + (type.value == kEtherTypeIpv4 ? 9 : 6);
    const std::size_t tcp = type.behind + network;
    return byte_at(header, protocol) == kProtocolTcp && header.size() >= tcp + kTcpBytes &&
           header.size() == tcp + (std::size_t{byte_at(header, tcp + 12)} >> 4U) * 4;
}

void adjust_tcp_header(std::span<std::byte> header, const TcpPart& part) {
    constexpr std::uint8_t kOnLast = 0x01 | 0x08;  // FIN, PSH
    constexpr std::uint8_t kOnFirst = 0x80;        // CWR (RFC 3168)
    const EtherType type = ether_type_of(header);
    const std::size_t ip = type.behind;
    const std::size_t network = network_bytes(header, type);
    const std::size_t packet = header.size() - ip + part.length;
    if (type.value == kEtherTypeIpv4) {
        put_word(header, ip + 2, static_cast<std::uint16_t>(packet));
        put_word(header, ip + 4, static_cast<std::uint16_t>(word_at(header, ip + 4) + part.number));
    } else {
        put_word(header, ip + 4, static_cast<std::uint16_t>(packet - kIpv6Bytes));
    }
    const std::size_t tcp = ip + network;
    const std::uint32_t sequence =
        (std::uint32_t{word_at(header, tcp + 4)} << 16U | word_at(header, tcp + 6)) + part.offset;
    put_word(header, tcp + 4, static_cast<std::uint16_t>(sequence >> 16U));
    put_word(header, tcp + 6, static_cast<std::uint16_t>(sequence & 0xFFFFU));
    const unsigned dropped = (part.is_last ? 0U : kOnLast) | (part.number == 0 ? 0U : kOnFirst);
    header[tcp + 13] &= static_cast<std::byte>(~dropped);
}

}  // namespace simverbs
