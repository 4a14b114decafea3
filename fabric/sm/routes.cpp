#include "fabric/sm/routes.hpp"

#include <deque>
#include <limits>

namespace fabric {

namespace {

constexpr std::uint32_t kUnreachable = std::numeric_limits<std::uint32_t>::max();

// The port at the other end of a link that is up; nullptr otherwise.
Port* reachable_peer(const Port& port) {
    const Link* const link = port.link();
    return link != nullptr && link->state() == LinkState::kUp ? port.peer() : nullptr;
}

// Hops from every node to `target`, by node. Paths lead through switches only.
std::vector<std::uint32_t> hops_to(const Network& network, const Node& target) {
    std::vector<std::uint32_t> hops(network.node_count(), kUnreachable);
    std::deque<const Node*> frontier{&target};
    hops[target.id().value()] = 0;
    while (!frontier.empty()) {
        const Node& node = *frontier.front();
        frontier.pop_front();
        if (&node != &target && node.kind() != NodeKind::kSwitch) {
            continue;
        }
        for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
            const Port* const peer = reachable_peer(node.port(PortNumber{number}));
            if (peer != nullptr && hops[peer->node().id().value()] == kUnreachable) {
                hops[peer->node().id().value()] = hops[node.id().value()] + 1;
                frontier.push_back(&peer->node());
            }
        }
    }
    return hops;
}

class TableBuilder {
  public:
    explicit TableBuilder(const Network& network)
        : network_(network), tables_(network.switch_count()) {}

    // Enters a LID of a host's port: it is reached through the one switch port it is plugged into.
    void add_host_port(const Port& port) {
        const Port* const entry = reachable_peer(port);
        if (entry == nullptr || entry->node().kind() != NodeKind::kSwitch) {
            return;
        }
        add(entry->node(), port.attributes().lid, entry->number().value());
    }

    void add_switch(const Node& node) { add(node, node.port(PortNumber{0}).attributes().lid, 0); }

    std::vector<std::vector<std::uint16_t>> take() { return std::move(tables_); }

  private:
    // `lid` is reached from `last`, a switch, through its port `last_port`.
    void add(const Node& last, Lid lid, std::uint16_t last_port) {
        if (distances_to_ != &last) {  // ports of one switch follow each other: one search for all
            hops_ = hops_to(network_, last);
            distances_to_ = &last;
        }
        for (std::size_t i = 0; i < tables_.size(); ++i) {
            const Switch& from = network_.switch_at(i);
            enter(tables_[i], lid, &from == &last ? last_port : nearest_port(from, lid));
        }
    }

    [[nodiscard]] std::uint16_t nearest_port(const Switch& from, Lid lid) const {
        const std::uint32_t distance = hops_[from.id().value()];
        if (distance == kUnreachable) {
            return Switch::kNoRoute;
        }
        std::vector<std::uint16_t> nearest;
        for (std::uint16_t number = 1; number <= from.port_count(); ++number) {
            const Port* const peer = reachable_peer(from.port(PortNumber{number}));
            if (peer != nullptr && peer->node().kind() == NodeKind::kSwitch &&
                hops_[peer->node().id().value()] + 1 == distance) {
                nearest.push_back(number);
            }
        }
        return nearest[lid.value() % nearest.size()];
    }

    static void enter(std::vector<std::uint16_t>& table, Lid lid, std::uint16_t port) {
        if (table.size() <= lid.value()) {
            table.resize(lid.value() + 1U, Switch::kNoRoute);
        }
        table[lid.value()] = port;
    }

    const Network& network_;
    std::vector<std::vector<std::uint16_t>> tables_;
    std::vector<std::uint32_t> hops_;
    const Node* distances_to_ = nullptr;
};

}  // namespace

std::vector<std::vector<std::uint16_t>> min_hop_tables(const Network& network) {
    TableBuilder builder(network);
    for (std::size_t i = 0; i < network.switch_count(); ++i) {
        const Switch& node = network.switch_at(i);
        if (node.port(PortNumber{0}).attributes().link_layer == LinkLayer::kEthernet) {
            continue;
        }
        builder.add_switch(node);
        for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
            const Port* const peer = reachable_peer(node.port(PortNumber{number}));
            if (peer != nullptr && peer->node().kind() == NodeKind::kHca) {
                builder.add_host_port(*peer);
            }
        }
    }
    return builder.take();
}

}  // namespace fabric
