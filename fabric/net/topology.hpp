// A description of a fabric before it exists: nodes, ports, links. Checked as a whole, with an
// error that says what would be right. Holds no state and no pointers, and is independent of the
// order in which it was written down: numbers follow names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/rate.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"
#include "fabric/net/ethernet.hpp"
#include "fabric/net/link_layer.hpp"
#include "fabric/net/node.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

struct NodeSpec {
    std::string name;  // letters, digits, '_' and '.'
    NodeKind kind = NodeKind::kHca;
    std::uint16_t port_count = 1;
};

struct LinkEndSpec {
    std::string node;
    PortNumber port{1};
};

struct LinkSpec {
    LinkEndSpec a;
    LinkEndSpec b;
    LinkWidth width = LinkWidth::k4x;
    LinkSpeed speed = LinkSpeed::kEdr;  // 4x EDR: 100 Gb/s
    SimDuration latency{500'000};       // 500 ns: about 100 m of fibre, or cable and transceivers
    Mtu mtu = Mtu::k4096;               // of InfiniBand
    LinkLayer layer = LinkLayer::kInfiniband;
    std::uint32_t ethernet_mtu = kDefaultEthernetMtu;  // bytes after the Ethernet header
    bool has_roce_v1 = true;  // its ports have each GID as RoCE v1 and as v2, else as v2 only
};

struct Topology {
    // The management datagrams count ports in 8 bits, 254 at most on a switch. A wider crossbar is
    // an idealisation that the start-up subnet manager can route.
    static constexpr std::uint16_t kMaxSwitchPorts = 1024;
    static constexpr std::uint16_t kMaxHcaPorts = 254;
    static constexpr std::uint32_t kMaxStarHosts = kMaxSwitchPorts;
    // IPv6's least MTU, and the usual jumbo frame.
    static constexpr std::uint32_t kMinEthernetMtu = 1280;
    static constexpr std::uint32_t kMaxEthernetMtu = 9000;

    std::vector<NodeSpec> nodes;
    std::vector<LinkSpec> links;

    // What is wrong with it, in words; nothing if it can be built.
    [[nodiscard]] std::optional<std::string> error() const;

    // Hosts, then switches, each in the natural order of names (h2 before h10); links by their
    // ends, the lower first. Node numbers are ranks in this order.
    void sort();
};

// A topology, or why there is none: exactly one of the two.
struct TopologyResult {
    std::optional<Topology> topology;
    std::string error;
};

// "pair" (h0 - h1) or "star:N" (h0 .. hN-1 around switch s0); "eth-pair" and "eth-star:N" are the
// same on Ethernet. "vpi-pair": h0 and h1 have two ports each, 1 on InfiniBand and 2 on Ethernet.
TopologyResult make_topology(std::string_view spec);

Topology make_pair(LinkLayer layer = LinkLayer::kInfiniband);
Topology make_star(std::uint32_t hosts,  // 2..kMaxStarHosts, asserted
                   LinkLayer layer = LinkLayer::kInfiniband);
Topology make_vpi_pair();

// Runs of digits compare as numbers: "h2" < "h10".
bool natural_less(std::string_view a, std::string_view b);

}  // namespace fabric
