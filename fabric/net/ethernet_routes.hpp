// Who is where on an Ethernet of several switches, known from the start and after each change of a
// link at once: shortest ways to each switch with stations, and a spanning tree for groups. Refuses
// learning, and the time that protocols take to agree.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/net/ethernet.hpp"

namespace fabric {

class Network;

// The port of a host, and where its switch is among the Network's switches.
struct Station {
    MacAddress mac;
    std::uint32_t switch_index;
    std::uint16_t port;
};
using Stations = std::vector<Station>;  // by ascending address

// The routes of one switch.
struct EthernetRoutes {
    std::shared_ptr<const Stations> stations;
    std::uint32_t own_index = 0;
    // [index of a switch]: the ports on shortest ways there, ascending. Only of switches that have
    // stations.
    std::vector<std::vector<std::uint16_t>> ports_to;
    // By which groups and strangers are reached: of the tree and of hosts, ascending.
    std::vector<std::uint16_t> tree_ports;
};

// Gives each Ethernet switch its routes, over the links that are up.
void route_ethernet(Network& network);

}  // namespace fabric
