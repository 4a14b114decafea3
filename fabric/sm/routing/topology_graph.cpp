#include "fabric/sm/routing/topology_graph.hpp"

#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace fabric::routing {

namespace {

using PortOf = std::pair<std::string_view, std::uint16_t>;

PortOf port_of(const LinkEndSpec& end) {
    return {end.node, end.port.value()};
}

}  // namespace

NamedGraph graph_of(const Topology& topology) {
    std::set<PortOf> ethernet_ports;
    std::set<std::string_view> ethernet_nodes;
    std::map<PortOf, PortOf> peers;  // of HCAs
    for (const LinkSpec& link : topology.links) {
        for (const auto& [here, there] :
             {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)}) {
            if (link.layer == LinkLayer::kEthernet) {
                ethernet_ports.insert(port_of(*here));
                ethernet_nodes.insert(here->node);
            } else {
                peers.emplace(port_of(*here), port_of(*there));
            }
        }
    }
    NamedGraph named;
    std::map<std::string_view, SwitchIndex> switches;
    for (const NodeSpec& node : topology.nodes) {
        if (node.kind == NodeKind::kSwitch && !ethernet_nodes.contains(node.name)) {
            switches.emplace(node.name, named.graph.add_switch(node.port_count));
            named.switches.push_back(node.name);
        }
    }
    std::uint16_t lid = 0;
    for (const NodeSpec& node : topology.nodes) {
        if (node.kind == NodeKind::kSwitch) {
            if (const auto found = switches.find(node.name); found != switches.end()) {
                named.graph.add_destination({Lid{++lid}, found->second, 0});
            }
            continue;
        }
        for (std::uint16_t port = 1; port <= node.port_count; ++port) {
            if (ethernet_ports.contains({node.name, port})) {
                continue;
            }
            ++lid;
            const auto peer = peers.find({node.name, port});
            const auto found =
                peer == peers.end() ? switches.end() : switches.find(peer->second.first);
            if (found != switches.end()) {
                named.graph.add_destination({Lid{lid}, found->second, peer->second.second});
            }
        }
    }
    for (const LinkSpec& link : topology.links) {
        const auto a = switches.find(link.a.node);
        const auto b = switches.find(link.b.node);
        if (a != switches.end() && b != switches.end()) {
            named.graph.connect(a->second, link.a.port.value(), b->second, link.b.port.value());
        }
    }
    return named;
}

}  // namespace fabric::routing
