// Addresses of hosts' Ethernet ports: changes that an administrator makes, since nobody manages
// these ports over the network, and the MAC address that belongs to a GID.
#pragma once

#include <cstdint>

#include "fabric/net/network.hpp"

namespace fabric {

// The port's IPv4 address in a VLAN (0: without one) from now on, in each entry of its GID table
// that had the old one (RoCE v1 and v2); raises kGidChange. False, and no change: 0, a multicast or
// broadcast address, one that another port has there, or a VLAN that the port has no address in.
bool set_ipv4_address(const Network& network, Port& port, std::uint32_t address,
                      std::uint16_t vlan = 0);

// Finds the MAC address of `target` for frames from `source`, an entry of a GID table. A link-local
// address on RoCE v1 is not looked up. 0, or an errno: EINVAL, `target` is zero or of the other
// address family; ETIMEDOUT, nobody in the VLAN of `source` has it (at once: the seconds that a
// neighbour is waited for are not modelled).
int resolve_mac(const Network& network, const GidEntry& source, const Gid& target, MacAddress& mac);

}  // namespace fabric
