#include "simverbs/wire/packet_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include <libdeflate.h>

#include "fabric/net/ethernet.hpp"
#include "fabric/net/ethernet_queueing.hpp"
#include "fabric/net/management.hpp"

#include "simverbs/wire/packet.hpp"

namespace simverbs {
namespace {

constexpr std::uint8_t kLnhLocal = 2;  // LRH:LNH, IBA 7.7.5
constexpr std::uint8_t kLnhGlobal = 3;
constexpr std::uint8_t kNextHeaderIba = 0x1B;
constexpr std::uint8_t kNextHeaderUdp = 17;
constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::uint16_t kEtherTypeRoceV1 = 0x8915;
constexpr std::uint16_t kEtherTypeVlan = 0x8100;
constexpr std::uint16_t kRocePort = 4791;
constexpr std::uint16_t kFirstSourcePort = 0xC000;
constexpr std::uint32_t kUdpBytes = 8;
constexpr std::uint32_t kIpv4Bytes = 20;
constexpr std::uint32_t kIpv6Bytes = 40;

class Writer {
  public:
    explicit Writer(Bytes& out) : out_(out) {}

    void u8(std::uint64_t value) { out_.push_back(static_cast<std::byte>(value)); }
    void u16(std::uint64_t value) { big_endian(value, 2); }
    void u24(std::uint64_t value) { big_endian(value, 3); }
    void u32(std::uint64_t value) { big_endian(value, 4); }
    void u64(std::uint64_t value) { big_endian(value, 8); }
    template <std::size_t N>
    void array(const std::array<std::uint8_t, N>& bytes) {
        span(std::as_bytes(std::span(bytes)));
    }
    void span(std::span<const std::byte> bytes) {
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    }
    void zeros(std::size_t count) { out_.resize(out_.size() + count); }
    void low_byte_first(std::uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i) {
            u8(value >> (8U * i));
        }
    }

  private:
    void big_endian(std::uint64_t value, unsigned bytes) {
        for (unsigned i = bytes; i-- > 0;) {
            u8(value >> (8U * i));
        }
    }
    Bytes& out_;
};

// Where headers of a frame begin in the buffer that it is built in.
struct Places {
    std::size_t frame = 0;
    std::size_t network = 0;    // GRH or IP header
    std::size_t transport = 0;  // BTH
};

void write_lrh(Writer& to, const fabric::Frame& frame, std::uint32_t bytes_to_icrc) {
    to.u8(static_cast<unsigned>(frame.vl) << 4U);
    to.u8(static_cast<unsigned>(frame.sl) << 4U | (frame.has_grh ? kLnhGlobal : kLnhLocal));
    to.u16(frame.dlid.value());
    to.u16(bytes_to_icrc / 4);
    to.u16(frame.slid.value());
}

// `length`: of what follows, up to and including the ICRC.
void write_grh(Writer& to, const fabric::Grh& grh, std::uint8_t traffic_class, std::uint32_t length,
               std::uint8_t next_header) {
    to.u32(std::uint32_t{6} << 28U | std::uint32_t{traffic_class} << 20U | grh.flow_label);
    to.u16(length);
    to.u8(next_header);
    to.u8(grh.hop_limit);
    to.array(grh.sgid.bytes);
    to.array(grh.dgid.bytes);
}

void write_ipv4(Writer& to, const fabric::Grh& grh, std::uint8_t type_of_service,
                std::uint32_t length) {
    constexpr std::uint32_t kDoNotFragment = 0x4000;
    const auto half = [](const fabric::Gid& gid, std::size_t at) {
        return static_cast<std::uint32_t>(gid.bytes[at]) << 8U | gid.bytes[at + 1];
    };
    std::array<std::uint32_t, kIpv4Bytes / 2> words{
        0x4500U | type_of_service,  // version 4, five words
        kIpv4Bytes + length,
        0,
        kDoNotFragment,
        static_cast<std::uint32_t>(grh.hop_limit) << 8U | kNextHeaderUdp,
        0,
        half(grh.sgid, 12),
        half(grh.sgid, 14),
        half(grh.dgid, 12),
        half(grh.dgid, 14)};
    std::uint32_t sum = std::accumulate(words.begin(), words.end(), 0U);
    sum = (sum & 0xFFFFU) + (sum >> 16U);
    words[5] = ~((sum & 0xFFFFU) + (sum >> 16U)) & 0xFFFFU;
    for (const std::uint32_t word : words) {
        to.u16(word);
    }
}

struct BaseHeader {
    std::uint8_t opcode;
    std::uint16_t pkey;
    std::uint32_t dest_qpn;
    std::uint32_t psn = 0;
    std::uint32_t pad = 0;  // bytes
    bool solicited = false;
    bool migration_request = false;
    bool ack_request = false;
};

void write(Writer& to, const BaseHeader& header) {
    to.u8(header.opcode);
    to.u8((header.solicited ? 0x80U : 0U) | (header.migration_request ? 0x40U : 0U) |
          header.pad << 4U);
    to.u16(header.pkey);
    to.u8(0);
    to.u24(header.dest_qpn);
    to.u8(header.ack_request ? 0x80U : 0U);
    to.u24(header.psn);
}

// In the order of enum WireHeader.
void write_extended_headers(Writer& to, const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    if (operation.has(WireHeader::kDeth)) {
        to.u32(packet.qkey);
        to.u8(0);
        to.u24(packet.source_qpn);
    }
    if (operation.has(WireHeader::kXrceth)) {
        to.u8(0);
        to.u24(packet.srq.value());
    }
    if (operation.has(WireHeader::kFeth)) {
        constexpr unsigned kReachShift = 4;
        to.u32(packet.placement.bits | static_cast<unsigned>(packet.reach) << kReachShift);
    }
    if (operation.has(WireHeader::kReth)) {
        to.u64(packet.remote_address);
        to.u32(packet.rkey);
        to.u32(packet.dma_length);
    }
    if (operation.has(WireHeader::kAtomicEth)) {
        to.u64(packet.remote_address);
        to.u32(packet.rkey);
        to.u64(packet.swap_add);
        to.u64(packet.compare);
    }
    if (operation.has(WireHeader::kAeth)) {
        to.u8(packet.syndrome.encoded());
        to.u24(packet.msn);
    }
    if (operation.has(WireHeader::kAtomicAckEth)) {
        to.u64(packet.compare);
    }
    if (operation.has(WireHeader::kImmDt)) {
        std::array<std::uint8_t, 4> in_network_order{};
        std::memcpy(in_network_order.data(), &packet.immediate, in_network_order.size());
        to.array(in_network_order);
    }
    if (operation.has(WireHeader::kIeth)) {
        to.u32(packet.immediate);
    }
}

void fill(Bytes& bytes, std::size_t at, std::size_t count) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, std::byte{0xFF});
}

void fill_bits(Bytes& bytes, std::size_t at, std::uint8_t bits) {
    bytes[at] |= std::byte{bits};
}

constexpr std::size_t kReserved8a = 4;  // in the BTH

// Fields that routers and switches may change count as ones: of a packet with a GRH the LRH, which
// RoCE packets do not have and count as ones too (IBA 7.8.1, A16.4.5, A17.4.4).
std::uint32_t masked_crc(const Bytes& built, const Places& places, const fabric::Frame& frame,
                         fabric::LinkLayer layer) {
    const bool on_ethernet = layer == fabric::LinkLayer::kEthernet;
    const std::size_t from = on_ethernet ? places.network : places.frame;
    Bytes masked;
    masked.reserve(kLrhBytes + built.size() - from);
    if (on_ethernet) {
        masked.resize(kLrhBytes);
    }
    masked.insert(masked.end(), built.begin() + static_cast<std::ptrdiff_t>(from), built.end());
    if (on_ethernet || frame.has_grh) {
        fill(masked, 0, kLrhBytes);
        const std::size_t network = kLrhBytes;
        if (on_ethernet && frame.over_udp && is_ipv4_mapped(frame.grh.dgid)) {
            fill(masked, network + 1, 1);               // type of service
            fill(masked, network + 8, 1);               // time to live
            fill(masked, network + 10, 2);              // checksum
            fill(masked, network + kIpv4Bytes + 6, 2);  // of UDP
        } else {
            fill_bits(masked, network, 0x0F);  // traffic class
            fill(masked, network + 1, 3);      // and flow label
            fill(masked, network + 7, 1);      // hop limit
            if (frame.over_udp) {
                fill(masked, network + kIpv6Bytes + 6, 2);  // checksum of UDP
            }
        }
    } else {
        fill_bits(masked, 0, 0xF0);  // virtual lane
    }
    const std::size_t transport = places.transport - from + (on_ethernet ? kLrhBytes : 0);
    fill(masked, transport + kReserved8a, 1);
    return invariant_crc(masked);
}

void append_invariant_crc(Bytes& out, const Places& places, const fabric::Frame& frame,
                          fabric::LinkLayer layer) {
    Writer(out).low_byte_first(masked_crc(out, places, frame, layer), kIcrcBytes);
}

void append_variant_crc(Bytes& out, const Places& places, fabric::LinkLayer layer) {
    Writer to(out);
    if (layer == fabric::LinkLayer::kInfiniband) {
        to.low_byte_first(variant_crc(std::span(out).subspan(places.frame)), kVcrcBytes);
    }
}

void write_ethernet(Writer& to, const fabric::Frame& frame) {
    to.array(frame.destination_mac.bytes);
    to.array(frame.source_mac.bytes);
    const unsigned priority = frame.sl % fabric::kPriorities;
    if (frame.vlan != 0 || priority != 0) {
        to.u16(kEtherTypeVlan);
        to.u16(priority << 13U | frame.vlan);
    }
    to.u16(!frame.over_udp                  ? kEtherTypeRoceV1
           : is_ipv4_mapped(frame.grh.dgid) ? kEtherTypeIpv4
                                            : kEtherTypeIpv6);
}

// `length`: of BTH to ICRC.
void write_roce_network(Writer& to, const fabric::Frame& frame, std::uint32_t length) {
    if (!frame.over_udp) {
        write_grh(to, frame.grh, frame.grh.traffic_class, length, kNextHeaderIba);
        return;
    }
    constexpr std::uint8_t kEcnBits = 3;
    const auto traffic_class = static_cast<std::uint8_t>((frame.grh.traffic_class & ~kEcnBits) |
                                                         static_cast<std::uint8_t>(frame.ecn));
    if (is_ipv4_mapped(frame.grh.dgid)) {
        write_ipv4(to, frame.grh, traffic_class, kUdpBytes + length);
    } else {
        write_grh(to, frame.grh, traffic_class, kUdpBytes + length, kNextHeaderUdp);
    }
    to.u16(kFirstSourcePort | (frame.flow & (kFirstSourcePort - 1U) & 0x3FFFU));
    to.u16(kRocePort);
    to.u16(kUdpBytes + length);
    to.u16(0);  // none, as NICs send it
}

// Returns the place of the GRH or IP header. `length`: of BTH to ICRC.
std::size_t append_headers_before_bth(Bytes& out, const fabric::Frame& frame,
                                      fabric::LinkLayer layer, std::uint32_t length) {
    Writer to(out);
    if (layer == fabric::LinkLayer::kEthernet) {
        write_ethernet(to, frame);
        const std::size_t network = out.size();
        write_roce_network(to, frame, length);
        return network;
    }
    write_lrh(to, frame, kLrhBytes + (frame.has_grh ? kGrhBytes : 0) + length);
    const std::size_t network = out.size();
    if (frame.has_grh) {
        write_grh(to, frame.grh, frame.grh.traffic_class, length, kNextHeaderIba);
    }
    return network;
}

}  // namespace

void append_packet(Bytes& out, const fabric::Frame& frame, fabric::LinkLayer layer,
                   std::span<const std::byte> payload) {
    const Packet& packet = frame.transport_as<Packet>();
    const WireOpcode& operation = packet.operation();
    const bool is_notification = operation.kind == MessageKind::kCongestionNotification;
    const std::uint32_t bytes =
        is_notification ? kCnpPayloadBytes : static_cast<std::uint32_t>(payload.size());
    const std::uint32_t pad = padded(bytes) - bytes;
    const std::uint32_t length = operation.header_bytes + padded(bytes) + kIcrcBytes;

    Places places{.frame = out.size()};
    Writer to(out);
    places.network = append_headers_before_bth(out, frame, layer, length);
    places.transport = out.size();
    write(to, {.opcode = packet.opcode,
               .pkey = packet.pkey,
               .dest_qpn = packet.dest_qpn,
               .psn = packet.psn.value(),
               .pad = pad,
               .solicited = packet.solicited,
               .migration_request = packet.migration_request,
               .ack_request = packet.ack_request});
    write_extended_headers(to, packet);
    if (is_notification) {
        to.zeros(kCnpPayloadBytes);
    } else {
        to.span(payload);
    }
    to.zeros(pad);
    append_invariant_crc(out, places, frame, layer);
    if (const std::size_t place = places.transport + packet.corrupted_byte; place < out.size()) {
        out[place] ^= std::byte{packet.corrupted_bits};
    }
    append_variant_crc(out, places, layer);
}

void append_datagram(Bytes& out, const fabric::Frame& frame, fabric::LinkLayer layer,
                     std::span<const std::byte> datagram) {
    constexpr std::uint8_t kUdSendOnly = 0x64;
    constexpr std::uint32_t kBthAndDeth = 12 + 8;
    const auto& header = frame.transport_as<fabric::ManagementHeader>();
    const std::uint32_t length =
        kBthAndDeth + static_cast<std::uint32_t>(datagram.size()) + kIcrcBytes;
    Places places{.frame = out.size()};
    Writer to(out);
    places.network = append_headers_before_bth(out, frame, layer, length);
    places.transport = out.size();
    write(to, {.opcode = kUdSendOnly, .pkey = frame.pkey, .dest_qpn = header.destination_qp});
    to.u32(header.qkey);
    to.u8(0);
    to.u24(header.source_qp);
    to.span(datagram);
    append_invariant_crc(out, places, frame, layer);
    append_variant_crc(out, places, layer);
}

std::uint32_t invariant_crc(std::span<const std::byte> bytes) {
    return libdeflate_crc32(0, bytes.data(), bytes.size());
}

// Generator 0x100B, the low bit of each byte first: reflected 0xD008.
std::uint16_t variant_crc(std::span<const std::byte> bytes) {
    constexpr std::uint32_t kReflected = 0xD008;
    static constexpr auto kTable = [] {
        std::array<std::uint16_t, 256> table{};
        for (std::uint32_t i = 0; i < table.size(); ++i) {
            std::uint32_t value = i;
            for (int bit = 0; bit < 8; ++bit) {
                value = (value & 1U) != 0 ? value >> 1U ^ kReflected : value >> 1U;
            }
            table[i] = static_cast<std::uint16_t>(value);
        }
        return table;
    }();
    std::uint32_t crc = 0xFFFF;
    for (const std::byte byte : bytes) {
        crc = crc >> 8U ^ kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
    }
    return static_cast<std::uint16_t>(~crc);
}

}  // namespace simverbs
