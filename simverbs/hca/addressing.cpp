#include "simverbs/hca/addressing.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "fabric/core/counted.hpp"
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

// Says why resolve_mac() failed with `error`.
std::string describe_unresolved(int error, const fabric::GidEntry& source,
                                const fabric::Gid& target) {
    if (error == ETIMEDOUT) {
        return fmt::format("nobody has the destination's GID {}", fabric::to_string(target));
    }
    if (target == fabric::Gid{}) {
        return "grh.dgid is zero";
    }
    return fmt::format(
        "grh.dgid {} and the GID at sgid_index, {}, are not both of IPv4 or both of IPv6",
        fabric::to_string(target), fabric::to_string(source.gid));
}

}  // namespace

void cut_path(AddressVector& path) {
    path.sl &= kMaxServiceLevel;
    if (path.static_rate > kMaxStaticRate) {
        path.static_rate = 0;
    }
}

int resolve_path(const Hca& hca, AddressVector& path, std::string& why) {
    if (!hca.has_port(path.port)) {
        why = fmt::format("port_num {} is none of the ports 1 to {}", path.port, hca.port_count());
        return EINVAL;
    }
    if (path.sl > kMaxServiceLevel || path.src_path_bits > kMaxPathBits ||
        path.static_rate > kMaxStaticRate) {
        why = fmt::format("sl {}, src_path_bits {} or static_rate {} is more than {}, {} and {}",
                          path.sl, path.src_path_bits, path.static_rate, kMaxServiceLevel,
                          kMaxPathBits, kMaxStaticRate);
        return EINVAL;
    }
    const fabric::Port& port = hca.port(path.port);
    if (!path.is_global) {
        if (is_ethernet(port)) {
            why = "is_global is 0: on Ethernet a path needs a GRH with sgid_index and dgid";
        }
        return is_ethernet(port) ? EINVAL : 0;
    }
    path.flow_label &= kFlowLabelBits;
    const std::vector<fabric::GidEntry>& gids = port.attributes().gids;
    if (path.sgid_index >= gids.size()) {
        why = fmt::format(
            "sgid_index {}: port {} has {}, {}", path.sgid_index, path.port,
            fabric::counted(gids.size(), "GID"),
            gids.empty() ? "none to choose from" : fmt::format("indices 0 to {}", gids.size() - 1));
        return path.sgid_index >= hca.personality().limits.port.gid_entries ? EINVAL : ENODATA;
    }
    if (!is_ethernet(port)) {
        return 0;
    }
    path.dlid = 0;
    path.src_path_bits = 0;
    const fabric::GidEntry& source = gids[path.sgid_index];
    const fabric::Gid target{path.dgid};
    const int error = resolve_mac(hca.network(), source, target, path.destination_mac);
    if (error != 0) {
        why = describe_unresolved(error, source, target);
    }
    return error;
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
