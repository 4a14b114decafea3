// Commands about the ports of a device: attributes, tables, and the way to an address.
#include <cerrno>

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/model/stated_speed.hpp"

namespace simverbs {
namespace {

// A RoCE port has the default P_Key and no other (IBA A16.4.3).
constexpr std::uint16_t kEthernetPkeys = 1;
// The hosts' IP addresses are those of this machine's loopback interface, which is always the
// first.
constexpr std::uint32_t kLoopbackInterface = 1;

}  // namespace

int DeviceContext::refuse_port(std::uint32_t port) const {
    return refuse(EINVAL, "port {} is none of the ports 1 to {}", port, hca_.port_count());
}

std::uint16_t DeviceContext::pkey_entries(const fabric::Port& port) const {
    return port.attributes().link_layer == fabric::LinkLayer::kEthernet
               ? kEthernetPkeys
               : hca_.personality().limits.port.pkey_entries;
}

int DeviceContext::execute(const QueryPort& command, QueryPortReply& reply) {
    if (!hca_.has_port(command.port)) {
        return refuse_port(command.port);
    }
    const fabric::Port& port = hca_.port(command.port);
    const fabric::PortAttributes& attributes = port.attributes();
    reply.state = static_cast<std::uint32_t>(port.state());
    reply.physical_state = static_cast<std::uint32_t>(port.physical_state());
    reply.max_mtu = static_cast<std::uint32_t>(attributes.max_mtu);
    reply.active_mtu = static_cast<std::uint32_t>(attributes.active_mtu);
    reply.gid_entries = hca_.personality().limits.port.gid_entries;
    reply.link_layer = static_cast<std::uint8_t>(attributes.link_layer);
    reply.is_sm = hca_.carries_sm(command.port) ? 1 : 0;
    reply.pkey_entries = pkey_entries(port);
    reply.bad_pkey_count = hca_.bad_pkeys();
    reply.bad_qkey_count = hca_.bad_qkeys();
    reply.lid = attributes.lid.value();
    reply.sm_lid = attributes.sm_lid.value();
    reply.lmc = attributes.lmc;
    reply.sm_sl = attributes.sm_sl;
    reply.width = static_cast<std::uint32_t>(attributes.width);
    const bool is_ethernet = attributes.link_layer == fabric::LinkLayer::kEthernet;
    reply.speed = static_cast<std::uint32_t>(stated_speed(attributes.speed, is_ethernet));
    return 0;
}

int DeviceContext::execute(const QueryGid& command, QueryGidReply& reply) {
    const std::uint32_t entries = hca_.personality().limits.port.gid_entries;
    if (!hca_.has_port(command.port)) {
        return refuse_port(command.port);
    }
    if (command.index >= entries) {
        return refuse(EINVAL, "index {}: the GID table of port {} has {} entries, 0 to {}",
                      command.index, command.port, entries, entries - 1);
    }
    const auto& gids = hca_.port(command.port).attributes().gids;
    if (command.index < gids.size()) {
        const fabric::GidEntry& entry = gids[command.index];
        reply.gid = entry.gid.bytes;
        reply.type = static_cast<std::uint32_t>(entry.type);
        reply.ndev = entry.type == fabric::GidType::kInfiniband ? 0 : kLoopbackInterface;
    }
    return 0;
}

int DeviceContext::execute(const QueryPkey& command, QueryPkeyReply& reply) {
    if (!hca_.has_port(command.port)) {
        return refuse_port(command.port);
    }
    if (const std::uint32_t entries = pkey_entries(hca_.port(command.port));
        command.index >= entries) {
        return refuse(EINVAL, "index {}: the P_Key table of port {} has {} entries, 0 to {}",
                      command.index, command.port, entries, entries - 1);
    }
    const auto& pkeys = hca_.port(command.port).attributes().pkeys;
    reply.pkey = command.index < pkeys.size() ? pkeys[command.index] : 0;
    return 0;
}

int DeviceContext::execute(const ResolveEthernet& command, ResolveEthernetReply& reply) {
    AddressVector path = command.path;
    const int error = resolve_path(hca_, path, refusal_);
    reply.mac = path.destination_mac;
    if (error != 0) {
        return error;
    }
    const fabric::PortAttributes& port = hca_.port(path.port).attributes();
    if (port.link_layer != fabric::LinkLayer::kEthernet) {
        return refuse(EINVAL, "port {} is not on Ethernet", path.port);
    }
    reply.vlan = port.gids[path.sgid_index].vlan;
    return 0;
}

}  // namespace simverbs
