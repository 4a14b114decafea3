// The port numbers of a host's rdma_cm ids: who has which one in which port space, and who may
// share one (cma_check_port and cma_alloc_any_port of Linux). It assigns ephemeral ports in rising
// order, so that two runs get the same ones. Privileged ports are free for everybody.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simverbs/rdma_cm/port_space.hpp"
#include "simverbs/rdma_cm/socket_address.hpp"

namespace simverbs::rdma_cm {

inline constexpr std::uint16_t kFirstEphemeralPort = 32768;
inline constexpr std::uint16_t kLastEphemeralPort = 60999;

// The properties of an id that decide whether it may share its port.
struct PortOwner {
    std::uint32_t id = 0;
    SocketAddress source;
    SocketAddress destination;
    bool family_only = false;  // AFONLY: other families may have the same port
    bool reuse = false;
    bool is_listening = false;
};

class PortTable {
  public:
    // Takes the port of the owner's source address, or any free one where it is 0, and writes it
    // there. The owner stays where it is until release().
    // EADDRINUSE: another id has this port and address. EADDRNOTAVAIL: the same, where one of the
    // addresses is any address; or no ephemeral port is free.
    int bind(PortSpace space, PortOwner& owner);
    // 0 if the owner, which is bound, may listen; the errors of bind().
    [[nodiscard]] int check_listen(PortSpace space, const PortOwner& owner) const;
    void release(PortSpace space, const PortOwner& owner);

    // The owners of a port, those that were bound last first.
    [[nodiscard]] std::span<PortOwner* const> owners(PortSpace space, std::uint16_t port) const;

  private:
    using Key = std::pair<PortSpace, std::uint16_t>;

    int bind_any(PortSpace space, PortOwner& owner);
    void insert(const Key& key, PortOwner& owner);

    std::map<Key, std::vector<PortOwner*>> ports_;
    std::uint16_t next_ephemeral_ = kFirstEphemeralPort;
};

}  // namespace simverbs::rdma_cm
