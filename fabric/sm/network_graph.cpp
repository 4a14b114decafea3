#include "fabric/sm/network_graph.hpp"

#include <vector>

namespace fabric {

namespace {

using routing::kNobody;
using routing::SwitchIndex;

bool is_managed(const Port& port) {
    return port.attributes().link_layer == LinkLayer::kInfiniband;
}

void add_lids(routing::Graph& graph, const Port& port, SwitchIndex at, std::uint16_t by) {
    const std::uint32_t first = port.attributes().lid.value();
    for (std::uint32_t i = 0; first != 0 && i < 1U << port.attributes().lmc; ++i) {
        graph.add_destination({Lid{static_cast<std::uint16_t>(first + i)}, at, by});
    }
}

}  // namespace

routing::Graph graph_of(const Network& network) {
    routing::Graph graph;
    std::vector<SwitchIndex> by_node(network.node_count(), kNobody);
    for (std::size_t i = 0; i < network.switch_count(); ++i) {
        const Switch& one = network.switch_at(i);
        by_node[one.id().value()] = graph.add_switch(one.port_count());
    }
    for (std::size_t i = 0; i < network.switch_count(); ++i) {
        const Switch& one = network.switch_at(i);
        const auto at = static_cast<SwitchIndex>(i);
        if (!is_managed(one.port(PortNumber{0}))) {
            continue;
        }
        add_lids(graph, one.port(PortNumber{0}), at, 0);
        for (std::uint16_t number = 1; number <= one.port_count(); ++number) {
            const Port& port = one.port(PortNumber{number});
            if (port.link() == nullptr || port.link()->state() != LinkState::kUp) {
                continue;
            }
            const Port& peer = *port.peer();
            if (peer.node().kind() == NodeKind::kHca) {
                add_lids(graph, peer, at, number);
            } else {
                graph.connect(at, number, by_node[peer.node().id().value()], peer.number().value());
            }
        }
    }
    return graph;
}

}  // namespace fabric
