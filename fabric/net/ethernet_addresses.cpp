#include "fabric/net/ethernet_addresses.hpp"

#include <cerrno>

#include "fabric/core/assert.hpp"
#include "fabric/net/ethernet.hpp"

namespace fabric {

bool set_ipv4_address(const Network& network, Port& port, std::uint32_t address,
                      std::uint16_t vlan) {
    constexpr std::uint32_t kFirstMulticast = 224U << 24;
    SIMVERBS_ASSERT(port.attributes().link_layer == LinkLayer::kEthernet,
                    "port {} of {} is no Ethernet port", port.number().value(), port.node().name());
    const Gid gid = ipv4_mapped(address);
    const Port* const owner = network.find_neighbour(gid, vlan);
    if (address == 0 || address >= kFirstMulticast || (owner != nullptr && owner != &port)) {
        return false;
    }
    bool changed = false;
    for (GidEntry& entry : port.mutable_attributes().gids) {
        if (is_ipv4_mapped(entry.gid) && entry.vlan == vlan) {
            entry.gid = gid;
            changed = true;
        }
    }
    if (changed) {
        port.raise(PortEvent::kGidChange);
    }
    return changed;
}

// As Linux does (ib_resolve_eth_dmac).
int resolve_mac(const Network& network, const GidEntry& source, const Gid& target,
                MacAddress& mac) {
    if (target == Gid{}) {
        return EINVAL;
    }
    if (is_multicast(target)) {
        mac = multicast_mac(target);
        return 0;
    }
    if (source.type == GidType::kRoceV1 && is_link_local(target)) {
        mac = mac_of_link_local(target);
        return 0;
    }
    if (is_ipv4_mapped(target) != is_ipv4_mapped(source.gid)) {
        return EINVAL;
    }
    const Port* const neighbour = network.find_neighbour(target, source.vlan);
    if (neighbour == nullptr) {
        return ETIMEDOUT;
    }
    mac = neighbour->attributes().mac;
    return 0;
}

}  // namespace fabric
