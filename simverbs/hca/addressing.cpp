#include "simverbs/hca/addressing.hpp"

#include <cerrno>
#include <cstring>

#include "fabric/net/ethernet.hpp"
#include "fabric/net/ethernet_addresses.hpp"

#include "simverbs/hca/hca.hpp"
#include "simverbs/wire/ethernet_headers.hpp"
#include "simverbs/wire/packet.hpp"

namespace simverbs {
namespace {

constexpr std::uint8_t kMaxServiceLevel = 15;
constexpr std::uint8_t kMaxPathBits = 127;
// Devices cut a label to its 20 bits (mlx5_create_ah, mlx5_set_path); UCX passes ~0 on RoCE.
constexpr std::uint32_t kFlowLabelBits = 0xFFFFF;
constexpr std::uint8_t kMaxStaticRate = 24;  // IBV_RATE_1200_GBPS

bool is_ethernet(const fabric::Port& port) {
    return port.attributes().link_layer == fabric::LinkLayer::kEthernet;
}

// The LIDs of a port are those that share all but their lowest LMC bits (IBA 4.1.3).
bool has_lid(const fabric::Port& port, fabric::Lid lid) {
    const fabric::PortAttributes& own = port.attributes();
    return lid.value() >> own.lmc == own.lid.value() >> own.lmc && own.lid != fabric::kNoLid;
}

}  // namespace

void cut_path(AddressVector& path) {
    path.sl &= kMaxServiceLevel;
    if (path.static_rate > kMaxStaticRate) {
        path.static_rate = 0;
    }
}

int resolve_path(const Hca& hca, AddressVector& path) {
    if (!hca.has_port(path.port) || path.sl > kMaxServiceLevel ||
        path.src_path_bits > kMaxPathBits || path.static_rate > kMaxStaticRate) {
        return EINVAL;
    }
    const fabric::Port& port = hca.port(path.port);
    if (!path.is_global) {
        return is_ethernet(port) ? EINVAL : 0;
    }
    path.flow_label &= kFlowLabelBits;
    if (path.sgid_index >= hca.personality().limits.port.gid_entries) {
        return EINVAL;
    }
    const std::vector<fabric::GidEntry>& gids = port.attributes().gids;
    if (path.sgid_index >= gids.size()) {
        return ENODATA;
    }
    if (!is_ethernet(port)) {
        return 0;
    }
    path.dlid = 0;
    path.src_path_bits = 0;
    return resolve_mac(hca.network(), gids[path.sgid_index], fabric::Gid{path.dgid},
                       path.destination_mac);
}

void address_frame(fabric::Frame& frame, const fabric::Port& port, const AddressVector& path,
                   std::uint32_t source_qpn) {
    const fabric::PortAttributes& attributes = port.attributes();
    frame.source = port.node().id();
    frame.flow = source_qpn;
    frame.sl = path.sl;
    frame.has_grh = path.is_global;
    if (path.is_global) {
        const fabric::GidEntry& source = attributes.gids[path.sgid_index];
        frame.over_udp = source.type == fabric::GidType::kRoceV2;
        frame.grh.sgid = source.gid;
        frame.grh.dgid.bytes = path.dgid;
        frame.grh.flow_label = path.flow_label;
        frame.grh.traffic_class = path.traffic_class;
        frame.grh.hop_limit = path.hop_limit;
        frame.vlan = source.vlan;
    }
    if (is_ethernet(port)) {
        frame.source_mac = attributes.mac;
        frame.destination_mac = path.destination_mac;
        return;
    }
    frame.slid =
        fabric::Lid(static_cast<std::uint16_t>(attributes.lid.value() | path.src_path_bits));
    frame.dlid = fabric::Lid(path.dlid);
}

void address_raw_frame(fabric::Frame& frame, const fabric::Port& port,
                       std::span<const std::byte> bytes, std::uint32_t source_qpn) {
    frame.source = port.node().id();
    frame.flow = source_qpn;
    frame.is_raw = true;
    const std::size_t mac_bytes = frame.destination_mac.bytes.size();
    std::memcpy(frame.destination_mac.bytes.data(), bytes.data(), mac_bytes);
    std::memcpy(frame.source_mac.bytes.data(), bytes.data() + mac_bytes, mac_bytes);
    constexpr std::uint16_t kVlanBits = 0xFFF;
    frame.vlan = cvlan_of(bytes).value_or(0) & kVlanBits;
    const auto length = static_cast<std::uint32_t>(bytes.size());
    frame.payload_bytes = length - fabric::kEthernetHeaderBytes;
    frame.wire_bytes = fabric::ethernet_wire_bytes(length);
}

bool came_by(const fabric::Frame& frame, const fabric::Port& port, const AddressVector& path) {
    if (!is_ethernet(port)) {
        return frame.slid == fabric::Lid(path.dlid);
    }
    const fabric::GidEntry& own = port.attributes().gids[path.sgid_index];
    return frame.grh.sgid.bytes == path.dgid && frame.grh.dgid == own.gid &&
           frame.vlan == own.vlan && frame.over_udp == (own.type == fabric::GidType::kRoceV2);
}

bool leads_back(const fabric::Port& port, const AddressVector& path) {
    return is_ethernet(port) ? path.destination_mac == port.attributes().mac
                             : has_lid(port, fabric::Lid(path.dlid));
}

bool is_addressed_to(const fabric::Frame& frame, const fabric::Port& port) {
    return is_ethernet(port) ? frame.destination_mac == port.attributes().mac
                             : has_lid(port, frame.dlid);
}

}  // namespace simverbs
