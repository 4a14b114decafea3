// IP addresses of the hosts of a network as rdma_cm resolves them. On Ethernet they are the GIDs of
// the ports. On InfiniBand, where Linux has IPoIB interfaces, the first port of node n is
// 127.77.(n div 256).(n mod 256), and each port has its GIDs as IPv6 addresses. Refuses routers:
// whoever has an address is on the link.
#pragma once

#include <optional>
#include <vector>

#include "fabric/net/gid.hpp"
#include "fabric/net/network.hpp"

namespace simverbs::rdma_cm {

struct IpOwner {
    const fabric::Port* port = nullptr;
    fabric::Gid gid;  // that stands for the address
};

class IpAddresses {
  public:
    explicit IpAddresses(const fabric::Network& network) : network_(network) {}

    // Returns the port of one of these nodes with the address, an active one where several have
    // it.
    [[nodiscard]] std::optional<IpOwner> find_own(const std::vector<fabric::NodeId>& nodes,
                                                  const fabric::Gid& ip) const;
    // Returns the IPv4 addresses of these nodes, of each port in the order of its GIDs.
    [[nodiscard]] std::vector<fabric::Gid> ipv4_of(const std::vector<fabric::NodeId>& nodes) const;
    // Returns the address of one of these nodes that is on one link with `remote`. Of several
    // preferably one on another host, then one with an active port, then one with the same place on
    // its host, then the first. Nothing: no route.
    [[nodiscard]] std::optional<fabric::Gid> source_for(const std::vector<fabric::NodeId>& nodes,
                                                        const fabric::Gid& remote) const;
    // Returns the GID of `remote` as a port with the GID `own` finds it; nothing: nobody answers.
    [[nodiscard]] std::optional<fabric::Gid> resolve(const fabric::Port& from,
                                                     const fabric::Gid& own,
                                                     const fabric::Gid& remote) const;

  private:
    [[nodiscard]] std::optional<IpOwner> find(const fabric::Gid& ip) const;
    [[nodiscard]] std::size_t place_on_host(const fabric::Node& node) const;

    const fabric::Network& network_;
};

}  // namespace simverbs::rdma_cm
