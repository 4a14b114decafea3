#include "simverbs/host_rdma_cm/ip_addresses.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "fabric/net/ethernet.hpp"

namespace simverbs::rdma_cm {

using fabric::Gid;
using fabric::LinkLayer;
using fabric::Node;
using fabric::NodeId;
using fabric::Port;
using fabric::PortNumber;

namespace {

bool is_active(const Port& port) {
    return port.state() == fabric::PortState::kActive;
}

const fabric::GidEntry* find_entry(const Port& port, const Gid& gid) {
    const std::vector<fabric::GidEntry>& gids = port.attributes().gids;
    const auto found = std::ranges::find(gids, gid, &fabric::GidEntry::gid);
    return found == gids.end() ? nullptr : &*found;
}

template <class F>
const Port* find_port(const Node& node, F&& is_it) {
    for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
        const Port& port = node.port(PortNumber{number});
        if (is_it(port)) {
            return &port;
        }
    }
    return nullptr;
}

// The port whose IPoIB interface has the node's IPv4 address. An Ethernet port has it, if there is
// one.
const Port* ipoib_port(const Node& node) {
    const auto has_layer = [](LinkLayer layer) {
        return [layer](const Port& port) { return port.attributes().link_layer == layer; };
    };
    return find_port(node, has_layer(LinkLayer::kEthernet)) != nullptr
               ? nullptr
               : find_port(node, has_layer(LinkLayer::kInfiniband));
}

std::optional<IpOwner> find_at(const Node& node, const Gid& ip) {
    const auto has_it = [&ip](const Port& port) { return find_entry(port, ip) != nullptr; };
    const Port* found =
        find_port(node, [&](const Port& port) { return is_active(port) && has_it(port); });
    found = found != nullptr ? found : find_port(node, has_it);
    if (found != nullptr) {
        return IpOwner{found, ip};
    }
    const Port* const ipoib = ipoib_port(node);
    if (ipoib != nullptr && node.id().value() < fabric::kMaxIpHosts &&
        ip == fabric::ipv4_mapped(fabric::ipv4_address(node.id()))) {
        return IpOwner{ipoib, ipoib->attributes().gids.front().gid};
    }
    return std::nullopt;
}

// An IPv4 address and the network that it is in: 127.77.0.0/16, or that of a VLAN.
std::array<std::uint8_t, 2> network_of(const Gid& ip) {
    return {ip.bytes[12], ip.bytes[13]};
}

// Returns the address of a port in the network of `remote`.
std::optional<Gid> address_towards(const Port& port, const Gid& remote) {
    if (fabric::is_link_local(remote)) {
        const auto& gids = port.attributes().gids;
        const auto found = std::ranges::find_if(
            gids, [](const auto& entry) { return fabric::is_link_local(entry.gid); });
        return found == gids.end() ? std::nullopt : std::optional(found->gid);
    }
    if (!fabric::is_ipv4_mapped(remote)) {
        return std::nullopt;
    }
    const Gid first = fabric::ipv4_mapped(fabric::ipv4_address(port.node().id()));
    const auto wanted = fabric::is_multicast(remote) ? network_of(first) : network_of(remote);
    if (&port == ipoib_port(port.node())) {
        return network_of(first) == wanted ? std::optional(first) : std::nullopt;
    }
    for (const fabric::GidEntry& entry : port.attributes().gids) {
        if (fabric::is_ipv4_mapped(entry.gid) && network_of(entry.gid) == wanted) {
            return entry.gid;
        }
    }
    return std::nullopt;
}

// RFC 4391 section 4, RFC 1112 section 6.4: the GID of a group of IP over InfiniBand.
Gid ipoib_group(const Gid& group, std::uint16_t pkey) {
    const bool is_ipv4 = fabric::is_ipv4_mapped(group);
    Gid mgid{{0xFF, 0x12, static_cast<std::uint8_t>(is_ipv4 ? 0x40 : 0x60), 0x1B,
              static_cast<std::uint8_t>(pkey >> 8 | 0x80), static_cast<std::uint8_t>(pkey)}};
    const std::ptrdiff_t first = is_ipv4 ? 12 : 6;
    std::copy(group.bytes.begin() + first, group.bytes.end(), mgid.bytes.begin() + first);
    if (is_ipv4) {
        mgid.bytes[12] &= 0x0F;
    }
    return mgid;
}

}  // namespace

std::optional<IpOwner> IpAddresses::find_own(const std::vector<NodeId>& nodes,
                                             const Gid& ip) const {
    std::optional<IpOwner> found;
    for (const NodeId node : nodes) {
        const std::optional<IpOwner> here = find_at(network_.node(node), ip);
        if (here && (!found || (!is_active(*found->port) && is_active(*here->port)))) {
            found = here;
        }
    }
    return found;
}

std::vector<Gid> IpAddresses::ipv4_of(const std::vector<NodeId>& nodes) const {
    std::vector<Gid> all;
    for (const NodeId id : nodes) {
        const Node& node = network_.node(id);
        if (ipoib_port(node) != nullptr && id.value() < fabric::kMaxIpHosts) {
            all.push_back(fabric::ipv4_mapped(fabric::ipv4_address(id)));
        }
        for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
            for (const fabric::GidEntry& entry : node.port(PortNumber{number}).attributes().gids) {
                if (fabric::is_ipv4_mapped(entry.gid) &&
                    std::ranges::find(all, entry.gid) == all.end()) {
                    all.push_back(entry.gid);  // a GID of each RoCE version has it
                }
            }
        }
    }
    return all;
}

std::optional<IpOwner> IpAddresses::find(const Gid& ip) const {
    for (std::size_t i = 0; i < network_.host_count(); ++i) {
        if (const std::optional<IpOwner> found = find_at(network_.host(i), ip)) {
            return found;
        }
    }
    return std::nullopt;
}

std::size_t IpAddresses::place_on_host(const Node& node) const {
    std::size_t before = 0;
    for (std::size_t i = 0; i < node.id().value(); ++i) {
        before += network_.host(i).host() == node.host() ? 1 : 0;
    }
    return before;
}

std::optional<Gid> IpAddresses::source_for(const std::vector<NodeId>& nodes,
                                           const Gid& remote) const {
    const std::optional<IpOwner> owner = find(remote);
    struct Candidate {
        Gid ip;
        bool is_on_other_host;
        bool is_active;
        bool is_at_same_place;
    };
    const Node* const remote_node = owner ? &owner->port->node() : nullptr;
    std::optional<Candidate> best;
    for (const NodeId id : nodes) {
        const Node& node = network_.node(id);
        for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
            const Port& port = node.port(PortNumber{number});
            const std::optional<Gid> ip = address_towards(port, remote);
            if (!ip ||
                (owner && owner->port->attributes().link_layer != port.attributes().link_layer)) {
                continue;
            }
            const Candidate candidate{
                .ip = *ip,
                .is_on_other_host = remote_node != nullptr && remote_node->host() != node.host(),
                .is_active = is_active(port),
                .is_at_same_place =
                    remote_node != nullptr && place_on_host(*remote_node) == place_on_host(node)};
            const auto rank = [](const Candidate& one) {
                return std::tuple(one.is_on_other_host, one.is_active, one.is_at_same_place);
            };
            if (rank(candidate) == std::tuple(true, true, true)) {
                return candidate.ip;
            }
            if (!best || rank(candidate) > rank(*best)) {
                best = candidate;
            }
        }
    }
    return best ? std::optional(best->ip) : std::nullopt;
}

std::optional<Gid> IpAddresses::resolve(const Port& from, const Gid& own, const Gid& remote) const {
    const bool is_ethernet = from.attributes().link_layer == LinkLayer::kEthernet;
    if (fabric::is_multicast(remote)) {
        return is_ethernet ? remote : ipoib_group(remote, from.attributes().pkeys.front());
    }
    if (is_ethernet) {
        const fabric::GidEntry* const source = find_entry(from, own);
        const Port* const owner =
            source == nullptr ? nullptr : network_.find_neighbour(remote, source->vlan);
        return owner != nullptr && (owner == &from || is_active(*owner)) ? std::optional(remote)
                                                                         : std::nullopt;
    }
    const std::optional<IpOwner> owner = find(remote);
    const bool answers = owner && (owner->port == &from || is_active(*owner->port)) &&
                         owner->port->attributes().link_layer == LinkLayer::kInfiniband;
    return answers ? std::optional(owner->gid) : std::nullopt;
}

}  // namespace simverbs::rdma_cm
