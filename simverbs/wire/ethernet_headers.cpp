#include "simverbs/wire/ethernet_headers.hpp"

#include <algorithm>
#include <optional>

namespace simverbs {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::uint8_t kProtocolTcp = 6;
constexpr std::uint8_t kProtocolUdp = 17;

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

// An IPv4 packet within a frame, as far as its lengths can be believed.
struct Ipv4 {
    Bytes header;
    Bytes payload;  // without what pads the frame
    std::uint8_t protocol = 0;
    bool fragment = false;  // one of several
    bool first = true;      // begins with the header of the layer above
};

std::optional<Ipv4> ipv4_in(Bytes frame) {
    if (frame.size() < kEthernetBytes + kIpv4Bytes || word_at(frame, 12) != kEtherTypeIpv4) {
        return std::nullopt;
    }
    const Bytes packet = frame.subspan(kEthernetBytes);
    const std::size_t header = std::size_t{byte_at(packet, 0) & 0x0FU} * 4;
    const std::size_t total = word_at(packet, 2);
    if (byte_at(packet, 0) >> 4 != 4 || header < kIpv4Bytes || total < header ||
        total > packet.size()) {
        return std::nullopt;
    }
    constexpr unsigned kMoreFragments = 0x2000;
    constexpr unsigned kFragmentOffset = 0x1FFF;
    const unsigned fragment = word_at(packet, 6);
    return Ipv4{packet.first(header), packet.subspan(header, total - header), byte_at(packet, 9),
                (fragment & (kMoreFragments | kFragmentOffset)) != 0,
                (fragment & kFragmentOffset) == 0};
}

void take_ports(Bytes segment, std::uint8_t protocol, FrameHeaders& headers) {
    const bool tcp = protocol == kProtocolTcp;
    if ((!tcp && protocol != kProtocolUdp) || segment.size() < 4) {
        return;
    }
    headers.layers = headers.layers | (tcp ? FrameLayer::kTcp : FrameLayer::kUdp);
    take(segment, 0, headers.fields.source_port);
    take(segment, 2, headers.fields.destination_port);
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

}  // namespace

FrameHeaders parse_frame(Bytes frame) {
    FrameHeaders headers;
    if (frame.size() < kEthernetBytes) {
        return headers;
    }
    FrameFields& fields = headers.fields;
    headers.layers = FrameLayer::kEthernet;
    take(frame, 0, fields.destination_mac);
    take(frame, 6, fields.source_mac);
    take(frame, 12, fields.ether_type);
    if (const std::optional<Ipv4> ipv4 = ipv4_in(frame)) {
        headers.layers = headers.layers | FrameLayer::kIpv4;
        take(ipv4->header, 12, fields.ipv4_source);
        take(ipv4->header, 16, fields.ipv4_destination);
        fields.ipv4_protocol = ipv4->protocol;
        fields.ipv4_tos = byte_at(ipv4->header, 1);
        fields.ipv4_ttl = byte_at(ipv4->header, 8);
        if (ipv4->first) {
            take_ports(ipv4->payload, ipv4->protocol, headers);
        }
    } else if (frame.size() >= kEthernetBytes + kIpv6Bytes &&
               word_at(frame, 12) == kEtherTypeIpv6) {
        const Bytes packet = frame.subspan(kEthernetBytes);
        headers.layers = headers.layers | FrameLayer::kIpv6;
        take(packet, 8, fields.ipv6_source);
        take(packet, 24, fields.ipv6_destination);
        take(packet, 0, fields.ipv6_flow_label);
        fields.ipv6_traffic_class = static_cast<std::uint8_t>(word_at(packet, 0) >> 4);
        fields.ipv6_flow_label[0] = 0;
        fields.ipv6_flow_label[1] &= 0x0FU;
        fields.ipv6_next_header = byte_at(packet, 6);
        fields.ipv6_hop_limit = byte_at(packet, 7);
        take_ports(packet.subspan(kIpv6Bytes), fields.ipv6_next_header, headers);
    }
    return headers;
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
    constexpr std::size_t kIpChecksum = kEthernetBytes + 10;
    put_word(frame, kIpChecksum, 0);
    put_word(frame, kIpChecksum, static_cast<std::uint16_t>(~folded(sum_of(ipv4->header))));
    if (const std::optional<std::size_t> offset = checksum_offset(*ipv4)) {
        const std::size_t place = kEthernetBytes + ipv4->header.size() + *offset;
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

bool is_tcp_header(Bytes header) {
    constexpr std::size_t kTcpBytes = 20;
    if (header.size() < kEthernetBytes + kIpv4Bytes) {
        return false;
    }
    std::size_t network = 0;
    std::uint8_t protocol = 0;
    if (word_at(header, 12) == kEtherTypeIpv4) {
        network = std::size_t{byte_at(header, kEthernetBytes) & 0x0FU} * 4;
        protocol = byte_at(header, kEthernetBytes + 9);
        if (network < kIpv4Bytes) {
            return false;
        }
    } else if (word_at(header, 12) == kEtherTypeIpv6) {
        network = kIpv6Bytes;
        protocol = byte_at(header, kEthernetBytes + 6);
    }
    const std::size_t tcp = kEthernetBytes + network;
    return network != 0 && protocol == kProtocolTcp && header.size() >= tcp + kTcpBytes &&
           header.size() == tcp + (std::size_t{byte_at(header, tcp + 12)} >> 4U) * 4;
}

void adjust_tcp_header(std::span<std::byte> header, const TcpPart& part) {
    constexpr std::uint8_t kOnLast = 0x01 | 0x08;  // FIN, PSH
    constexpr std::uint8_t kOnFirst = 0x80;        // CWR (RFC 3168)
    const bool is_ipv4 = word_at(header, 12) == kEtherTypeIpv4;
    const std::size_t network =
        is_ipv4 ? std::size_t{byte_at(header, kEthernetBytes) & 0x0FU} * 4 : kIpv6Bytes;
    const std::size_t packet = header.size() - kEthernetBytes + part.length;
    if (is_ipv4) {
        put_word(header, kEthernetBytes + 2, static_cast<std::uint16_t>(packet));
        put_word(header, kEthernetBytes + 4,
                 static_cast<std::uint16_t>(word_at(header, kEthernetBytes + 4) + part.number));
    } else {
        put_word(header, kEthernetBytes + 4, static_cast<std::uint16_t>(packet - kIpv6Bytes));
    }
    const std::size_t tcp = kEthernetBytes + network;
    const std::uint32_t sequence =
        (std::uint32_t{word_at(header, tcp + 4)} << 16U | word_at(header, tcp + 6)) + part.offset;
    put_word(header, tcp + 4, static_cast<std::uint16_t>(sequence >> 16U));
    put_word(header, tcp + 6, static_cast<std::uint16_t>(sequence & 0xFFFFU));
    const unsigned dropped = (part.is_last ? 0U : kOnLast) | (part.number == 0 ? 0U : kOnFirst);
    header[tcp + 13] &= static_cast<std::byte>(~dropped);
}

}  // namespace simverbs
