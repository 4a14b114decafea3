// Topologies of regular shape, by name and numbers. Hosts are h0, h1, ... with one port each;
// switches are called after their place. Refuses shapes with more ports than there are LIDs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fabric/core/outcome.hpp"
#include "fabric/net/link_layer.hpp"
#include "fabric/net/topology.hpp"

namespace fabric {

inline constexpr std::uint32_t kMaxStarHosts = Topology::kMaxSwitchPorts;
inline constexpr std::uint32_t kMaxRingSwitches = 1024;
inline constexpr std::uint32_t kMaxFatTreePorts = 36;  // 11,664 hosts

// Makes what generators() lists; each but vpi-pair is on Ethernet with "eth-" before it.
Outcome<Topology> generate_topology(std::string_view spec);

// "pair, star:N, ring:N, ...": for errors and help.
std::string_view generators();

// h0 - h1.
Topology make_pair(LinkLayer layer = LinkLayer::kInfiniband);
// Hosts around switch s0.
Topology make_star(std::uint32_t hosts,  // 2..kMaxStarHosts, asserted
                   LinkLayer layer = LinkLayer::kInfiniband);
// h0 and h1 have two ports each, 1 on InfiniBand and 2 on Ethernet.
Topology make_vpi_pair();
// Switches s0, s1, ... in a ring, host hN on sN. Ports: 1 the host, 2 the next switch, 3 the one
// before.
Topology make_ring(std::uint32_t switches,  // 3..kMaxRingSwitches, asserted
                   LinkLayer layer = LinkLayer::kInfiniband);
// Three levels of switches with `ports` ports (Al-Fares et al., SIGCOMM 2008): as many pods, each
// with half as many switches podP.edgeE and podP.aggA; above them coreC. Hosts are on the edge
// switches in order, ports/2 each. Lower ports lead down.
Topology make_fat_tree(std::uint32_t ports,  // even, 2..kMaxFatTreePorts, asserted
                       LinkLayer layer = LinkLayer::kInfiniband);
// Every leafN is linked to every spineN; hosts are on the leaves in order. Asserts what
// generate_topology() says of its numbers.
Topology make_two_level_fat_tree(std::uint32_t leaves, std::uint32_t spines,
                                 std::uint32_t hosts_per_leaf,
                                 LinkLayer layer = LinkLayer::kInfiniband);
// Switches sX.Y or sX.Y.Z, a host each; host numbers count the last dimension first. Ports: 1 the
// host, then for each dimension the next and the one before. Two in a dimension have one link.
Topology make_torus(std::span<const std::uint32_t> dimensions,  // two or three, asserted
                    LinkLayer layer = LinkLayer::kInfiniband);
// Kim et al., ISCA 2008: groups of `routers` switches gG.sR, each with `hosts` hosts, a link to
// every other of its group and `globals` to other groups; routers * globals + 1 groups, one link
// between any two.
Topology make_dragonfly(std::uint32_t routers, std::uint32_t hosts, std::uint32_t globals,
                        LinkLayer layer = LinkLayer::kInfiniband);

}  // namespace fabric
