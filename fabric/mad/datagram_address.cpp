#include "fabric/mad/datagram_address.hpp"

#include <algorithm>

#include "fabric/mad/datagram.hpp"
#include "fabric/net/ethernet.hpp"
#include "fabric/net/ethernet_queueing.hpp"

namespace fabric {

namespace {

constexpr std::uint32_t kLrhBytes = 8;
constexpr std::uint32_t kGrhBytes = 40;
constexpr std::uint32_t kIpv4Bytes = 20;
constexpr std::uint32_t kIpv6Bytes = 40;
constexpr std::uint32_t kUdpBytes = 8;
constexpr std::uint32_t kBthAndDethBytes = 12 + 8;
constexpr std::uint32_t kIcrcBytes = 4;
constexpr std::uint32_t kVcrcBytes = 2;
constexpr std::uint32_t kBytesToIcrc = kBthAndDethBytes + mad::kDatagramBytes + kIcrcBytes;
constexpr std::uint16_t kFullMember = 0x8000;

bool is_on_ethernet(const PortAttributes& own) {
    return own.link_layer == LinkLayer::kEthernet;
}

GidType type_of(const Frame& frame) {
    return frame.over_udp ? GidType::kRoceV2 : GidType::kRoceV1;
}

std::optional<std::uint8_t> index_of_gid(const PortAttributes& own, const Frame& frame) {
    const auto found =
        std::find_if(own.gids.begin(), own.gids.end(), [&own, &frame](const GidEntry& entry) {
            return entry.gid == frame.grh.dgid &&
                   (!is_on_ethernet(own) ||
                    (entry.type == type_of(frame) && entry.vlan == frame.vlan));
        });
    return found == own.gids.end()
               ? std::nullopt
               : std::optional(static_cast<std::uint8_t>(found - own.gids.begin()));
}

}  // namespace

void address_by_lid(Frame& frame, const PortAttributes& own, const DatagramAddress& to) {
    frame.wire_bytes = kLrhBytes + kBytesToIcrc + kVcrcBytes;
    frame.payload_bytes = mad::kDatagramBytes;
    frame.slid = Lid(static_cast<std::uint16_t>(own.lid.value() | to.path_bits));
    frame.dlid = to.lid;
    frame.sl = to.sl;
    if (frame.transport_as<ManagementHeader>().source_qp == kSubnetManagementQp) {
        frame.vl = kManagementVl;
    } else if (to.pkey_index < own.pkeys.size()) {
        frame.pkey = own.pkeys[to.pkey_index];
    }
    if (to.global) {
        frame.wire_bytes += kGrhBytes;
        frame.has_grh = true;
        const std::size_t index = std::min<std::size_t>(to.global->gid_index, own.gids.size() - 1);
        frame.grh = {own.gids[index].gid, to.global->gid, to.global->flow_label,
                     to.global->traffic_class, to.global->hop_limit};
    }
}

void address_by_gid(Frame& frame, const PortAttributes& own, const DatagramAddress& to,
                    const MacAddress& destination) {
    const GidEntry& source = own.gids.at(to.global->gid_index);
    frame.source_mac = own.mac;
    frame.destination_mac = destination;
    frame.vlan = source.vlan;
    frame.sl = to.sl;
    frame.pkey = own.pkeys.at(to.pkey_index);
    frame.over_udp = source.type == GidType::kRoceV2;
    frame.has_grh = true;
    frame.grh = {source.gid, to.global->gid, to.global->flow_label, to.global->traffic_class,
                 to.global->hop_limit};
    const std::uint32_t ip_bytes = is_ipv4_mapped(to.global->gid) ? kIpv4Bytes : kIpv6Bytes;
    frame.payload_bytes = (frame.over_udp ? ip_bytes + kUdpBytes : kGrhBytes) + kBytesToIcrc;
    const bool is_tagged = frame.vlan != 0 || frame.sl % kPriorities != 0;
    frame.wire_bytes = ethernet_wire_bytes(kEthernetHeaderBytes + (is_tagged ? kVlanTagBytes : 0) +
                                           frame.payload_bytes);
}

bool is_for_gid_of(const PortAttributes& own, const Frame& frame) {
    return frame.destination_mac == own.mac && index_of_gid(own, frame).has_value();
}

DatagramAddress sender_of(const Frame& frame, const PortAttributes& own) {
    const auto& header = frame.transport_as<ManagementHeader>();
    DatagramAddress from{.lid = frame.slid,
                         .qp = header.source_qp,
                         .qkey = header.qkey,
                         .sl = frame.sl,
                         .path_bits = 0,
                         .pkey_index = index_of_pkey(own, frame.pkey).value_or(0),
                         .global = std::nullopt};
    if (is_unicast(frame.dlid)) {
        from.path_bits = static_cast<std::uint8_t>(frame.dlid.value() & ((1U << own.lmc) - 1));
    }
    if (frame.has_grh) {
        from.global =
            GlobalAddress{frame.grh.sgid, index_of_gid(own, frame).value_or(0), frame.grh.hop_limit,
                          frame.grh.traffic_class, frame.grh.flow_label};
    }
    return from;
}

std::optional<std::uint16_t> index_of_pkey(const PortAttributes& own, std::uint16_t pkey) {
    for (std::size_t i = 0; i < own.pkeys.size(); ++i) {
        const bool same = ((own.pkeys[i] ^ pkey) & ~kFullMember) == 0;
        if (own.pkeys[i] != 0 && same && ((own.pkeys[i] | pkey) & kFullMember) != 0) {
            return static_cast<std::uint16_t>(i);
        }
    }
    return std::nullopt;
}

}  // namespace fabric
