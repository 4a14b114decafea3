// Every host and InfiniBand switch of a network with its agents: subnet management (IBA 14) on
// InfiniBand, performance management (16), and management ports for whoever else wants to talk.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/mad/datagram_pool.hpp"
#include "fabric/mad/managed_node.hpp"
#include "fabric/mad/management_port.hpp"
#include "fabric/mad/node_identity.hpp"
#include "fabric/net/network.hpp"

namespace fabric {

class ManagedNetwork final : private LinkObserver {
  public:
    static constexpr std::uint16_t kMaxPorts = 254;  // in eight bits, without 0 and 255

    // `host` and `switch_node` are what the nodes of that kind say of themselves. The network
    // outlives it, and the pool the network. A switch of more than 254 ports has no agents: their
    // datagrams cannot name its ports.
    ManagedNetwork(Network& network, DatagramPool& pool, const NodeIdentity& host,
                   const NodeIdentity& switch_node);
    ~ManagedNetwork();
    ManagedNetwork(const ManagedNetwork&) = delete;
    ManagedNetwork& operator=(const ManagedNetwork&) = delete;

    // From now on switches tell the subnet manager of links that change, and ports their clients.
    // Not with a subnet manager that follows links by itself.
    void send_traps();

    [[nodiscard]] Network& network() const { return network_; }

    // nullptr: an Ethernet switch, or such a one.
    [[nodiscard]] ManagedNode* find(NodeId node) const { return nodes_.at(node.value()).get(); }
    // A host's port from 1, or a switch's port 0; nullptr: it has no management.
    [[nodiscard]] ManagementPort* find_port(NodeId node, PortNumber port) const;

  private:
    void link_changed(Link& link) override;

    Network& network_;
    bool sends_traps_ = false;
    std::vector<std::unique_ptr<ManagedNode>> nodes_;
};

}  // namespace fabric
