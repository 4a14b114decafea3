// Topologies as ibnetdiscover prints them and as ibsim reads them (infiniband-diags 44, ibsim
// 0.10). Read: nodes, GUIDs, descriptions, links, their width, speed and VLs; ibsim's guid bases,
// width, speed, module and include. LIDs are the subnet manager's. Refuses routers, aliases and
// "do".
#pragma once

#include <string>
#include <string_view>

#include "fabric/core/outcome.hpp"
#include "fabric/net/topology.hpp"

namespace fabric {

// `file` is for errors ("net.topo:3:1: ...") and the folder where included files are looked for.
//
// Names: a node's id where it is one of its own ("Switch1"); where it is ibnetdiscover's, made of
// the GUID ("H-0002c90300a1b2c3"), its description. An HCA described in two words is on the host
// that the first one names ("node7 mlx5_0"), and called node7, or node7.mlx5_0 where the host has
// several. What is no letter, digit, '_' or '.' becomes '_'; names that are taken give way to ids.
Outcome<Topology> read_ibnetdiscover(std::string_view text, const std::string& file);

// Both programs read it. Ids are names. Latency, buffers, personalities and forwarding are not in
// this format, and Ethernet is refused.
Outcome<std::string> write_ibnetdiscover(const Topology& topology);

}  // namespace fabric
