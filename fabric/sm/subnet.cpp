#include "fabric/sm/subnet.hpp"

namespace fabric {

SubnetPort* Subnet::find(const SubnetPortRef& ref) {
    const auto node = nodes.find(ref.node);
    return node == nodes.end() || ref.port >= node->second.ports.size() ||
                   !node->second.ports[ref.port].is_known
               ? nullptr
               : &node->second.ports[ref.port];
}

const SubnetPort* Subnet::find(const SubnetPortRef& ref) const {
    return const_cast<Subnet*>(this)->find(ref);
}

std::map<Guid, SubnetPortRef> Subnet::end_ports() const {
    std::map<Guid, SubnetPortRef> found;
    for (const auto& [guid, node] : nodes) {
        for (std::size_t number = 0; number < node.ports.size(); ++number) {
            if (node.ports[number].is_known && node.is_switch() == (number == 0)) {
                found.emplace(node.ports[number].guid,
                              SubnetPortRef{guid, static_cast<std::uint8_t>(number)});
            }
        }
    }
    return found;
}

std::optional<SubnetPortRef> Subnet::owner_of(Lid lid) const {
    for (const auto& [guid, ref] : end_ports()) {
        const SubnetPort& port = *find(ref);
        const std::uint64_t lmc = port.get(mad::port_info::kLmc);
        if (port.lid() != kNoLid && lid.value() >> lmc == port.lid().value() >> lmc) {
            return ref;
        }
    }
    return std::nullopt;
}

}  // namespace fabric
