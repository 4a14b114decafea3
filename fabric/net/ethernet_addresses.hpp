// Changes that an administrator makes to a host's Ethernet port: nobody manages those over the
// network.
#pragma once

#include <cstdint>

#include "fabric/net/network.hpp"

namespace fabric {

// The port's IPv4 address in a VLAN (0: without one) from now on, in each entry of its GID table
// that had the old one (RoCE v1 and v2); raises kGidChange. False, and no change: 0, a multicast or
// broadcast address, one that another port has there, or a VLAN that the port has no address in.
bool set_ipv4_address(const Network& network, Port& port, std::uint32_t address,
                      std::uint16_t vlan = 0);

}  // namespace fabric
