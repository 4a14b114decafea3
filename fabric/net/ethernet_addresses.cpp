#include "fabric/net/ethernet_addresses.hpp"

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

}  // namespace fabric
