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
#include "fabric/net/credits.hpp"
#include "fabric/net/ethernet.hpp"
#include "fabric/net/ethernet_queueing.hpp"
#include "fabric/net/link_layer.hpp"
#include "fabric/net/node.hpp"
#include "fabric/net/port.hpp"
#include "fabric/net/routing_engine.hpp"
#include "fabric/net/switch.hpp"

namespace fabric {

// When a switch starts to send a frame: when its last bit is in, or as soon as its header is read.
enum class Forwarding : std::uint8_t { kStoreAndForward, kCutThrough };

constexpr std::string_view to_string(Forwarding forwarding) {
    return forwarding == Forwarding::kCutThrough ? "cut-through" : "store-and-forward";
}

struct NodeSpec {
    std::string name;  // letters, digits, '_' and '.'
    NodeKind kind = NodeKind::kHca;
    std::uint16_t port_count = 1;
    std::string description{};       // NodeDescription; empty: see description_of()
    Guid guid{};                     // 0: from its rank, see node_guid()
    std::vector<Guid> port_guids{};  // of an HCA, [0] is port 1's; 0 or left out: see port_guid()

    // The host that an HCA is in; empty: one of its own name. Several HCAs of host h0 are called
    // h0.0, h0.1, ... unless a file says otherwise.
    std::string host{};
    std::string personality{};  // of an HCA; empty: the world's. A name that fabric does not know

    // How long a switch takes to forward; about as one of the EDR generation, see switch.hpp.
    SimDuration forwarding_delay = Switch::kDefaultForwardingDelay;
    Forwarding forwarding = Forwarding::kCutThrough;

    friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

struct LinkEndSpec {
    std::string node;
    PortNumber port{1};

    friend bool operator==(const LinkEndSpec&, const LinkEndSpec&) = default;
};

struct LinkSpec {
    LinkEndSpec a;
    LinkEndSpec b;
    LinkWidth width = LinkWidth::k4x;
    LinkSpeed speed = LinkSpeed::kEdr;  // 4x EDR: 100 Gb/s
    SimDuration latency{500'000};       // 500 ns: about 100 m of fibre, or cable and transceivers
    Mtu mtu = Mtu::k4096;               // of InfiniBand
    // Receive buffer of each data lane, at both ends of an InfiniBand link: the most that credits
    // can express, and more than a round trip of the link at 400 Gb/s. 0: no end of it, no credits.
    std::uint32_t buffer_bytes = kMaxBufferBytes;
    std::uint8_t vls = 1;  // data lanes, of InfiniBand: 1, 2, 4, 8 or 15, all of them in use
    LinkLayer layer = LinkLayer::kInfiniband;
    // Bytes after the Ethernet header; unset: what the devices have.
    std::optional<std::uint32_t> ethernet_mtu{};
    EthernetQueueing queueing{};
    bool has_roce_v1 = true;  // its ports have each GID as RoCE v1 and as v2, else as v2 only
    // The VLANs that an Ethernet link carries, in ascending order. A host at its end has an
    // interface in each. Unset: the link carries all VLANs, and hosts have no VLAN interfaces.
    std::optional<std::vector<std::uint16_t>> vlans{};

    friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

struct Topology {
    // The management datagrams count ports in 8 bits, 254 at most on a switch. A wider crossbar is
    // an idealisation that the start-up subnet manager can route.
    static constexpr std::uint16_t kMaxSwitchPorts = 1024;
    static constexpr std::uint16_t kMaxHcaPorts = 254;
    // A process of a served world is told of so many.
    static constexpr std::uint32_t kMaxHcasOfHost = 16;
    // Two packets of the largest MTU: one that arrives while one leaves.
    static constexpr std::uint32_t kMinBufferBytes = 8448;
    // IPv6's least MTU, and the usual jumbo frame.
    static constexpr std::uint32_t kMinEthernetMtu = 1280;
    static constexpr std::uint32_t kMaxEthernetMtu = 9000;
    static constexpr std::size_t kMaxDescriptionBytes = 64;  // NodeDescription (IBA 14.2.5.2)
    // Each VLAN takes four of a port's 256 GIDs, and so does the untagged interface.
    static constexpr std::size_t kMaxVlansOfHost = 62;

    std::vector<NodeSpec> nodes;
    std::vector<LinkSpec> links;
    RoutingEngine routing = RoutingEngine::kAutomatic;  // of its InfiniBand switches

    // In which some host has an interface, ascending.
    [[nodiscard]] std::vector<std::uint16_t> vlans_of_hosts() const;

    // Returns what is wrong with it, in words; nothing if it can be built.
    [[nodiscard]] std::optional<std::string> error() const;

    // Hosts, then switches, each in the natural order of names (h2 before h10); links by their
    // ends, the lower first. Node numbers are ranks in this order. A host that is called as its HCA
    // is left out.
    void sort();

    friend bool operator==(const Topology&, const Topology&) = default;
};

// The host that an HCA is in.
const std::string& host_of(const NodeSpec& node);

// Its NodeDescription: as given, else the name, with the host before it where that differs.
std::string description_of(const NodeSpec& node);

// Returns the GUID of the node of rank `id`: as given, else made of the rank. A port's GUID is its
// node's plus its number unless given.
Guid node_guid(const NodeSpec& node, NodeId id);
Guid port_guid(const NodeSpec& node, NodeId id, PortNumber port);

// Runs of digits compare as numbers: "h2" < "h10".
bool natural_less(std::string_view a, std::string_view b);

}  // namespace fabric
