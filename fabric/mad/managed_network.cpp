#include "fabric/mad/managed_network.hpp"

namespace fabric {

namespace {

// Switches take no part in the management of Ethernet.
bool has_management(const Node& node) {
    if (node.kind() == NodeKind::kHca) {
        return true;
    }
    for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
        const PortAttributes& port = node.port(PortNumber{number}).attributes();
        if (port.link_layer == LinkLayer::kInfiniband) {
            return true;
        }
    }
    return false;
}

}  // namespace

ManagedNetwork::ManagedNetwork(Network& network, DatagramPool& pool, const NodeIdentity& host,
                               const NodeIdentity& switch_node)
    : network_(network), nodes_(network.node_count()) {
    for (std::uint32_t i = 0; i < network.node_count(); ++i) {
        Node& node = network.node(NodeId{i});
        if (has_management(node) && node.port_count() <= kMaxPorts) {
            nodes_[i] = std::make_unique<ManagedNode>(
                network, node, pool, node.kind() == NodeKind::kHca ? host : switch_node);
        }
    }
}

ManagedNetwork::~ManagedNetwork() {
    if (sends_traps_) {
        network_.set_link_observer(nullptr);
    }
}

void ManagedNetwork::send_traps() {
    sends_traps_ = true;
    network_.set_link_observer(this);
}

ManagementPort* ManagedNetwork::find_port(NodeId node, PortNumber port) const {
    const ManagedNode* const found = find(node);
    return found == nullptr ? nullptr : found->find_port(port);
}

void ManagedNetwork::link_changed(Link& link) {
    for (const std::size_t which : {0U, 1U}) {
        const Port& port = link.end(which);
        if (ManagedNode* const node = find(port.node().id()); node != nullptr) {
            node->subnet().link_changed();
            if (ManagementPort* const managed = node->find_port(port.number());
                managed != nullptr && port.number() != PortNumber{0}) {
                managed->tell_link_changed();
            }
        }
    }
}

}  // namespace fabric
