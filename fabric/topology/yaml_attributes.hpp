// The attributes of nodes and links in a YAML topology: read once, and applied as often as a
// default or a range asks for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/net/topology.hpp"
#include "fabric/yaml/fields.hpp"

namespace fabric {

struct NodeAttributes {
    std::optional<std::uint16_t> ports;
    std::optional<std::string> personality;
    std::optional<std::string> description;
    std::optional<Guid> guid;
    std::optional<std::vector<Guid>> port_guids;
    std::optional<Forwarding> forwarding;
    std::optional<SimDuration> delay;

    void apply_to(NodeSpec& node) const;
    // GUIDs and descriptions belong to one node.
    [[nodiscard]] bool names_one_node() const { return guid || port_guids || description; }
};

struct LinkAttributes {
    std::optional<yaml::LinkRate> rate;
    std::optional<SimDuration> latency;
    std::optional<std::uint32_t> mtu;
    yaml::Position mtu_position;
    std::optional<std::uint8_t> vls;
    std::optional<std::uint32_t> buffer;
    std::optional<LinkLayer> layer;
    std::optional<std::uint8_t> paused_priorities;  // of Ethernet
    // VLANs of an Ethernet link in ascending order. The inner optional is empty for `all`.
    using Vlans = std::optional<std::vector<std::uint16_t>>;
    std::optional<Vlans> vlans;

    void apply_to(LinkSpec& link, yaml::Errors& errors) const;
};

// The words in files, in the order of the enumerators.
inline constexpr std::array<std::string_view, 2> kForwardingWords = {"store-and-forward",
                                                                     "cut-through"};
inline constexpr std::array<std::string_view, 2> kLayerWords = {"infiniband", "ethernet"};

inline constexpr std::array<std::string_view, 2> kPausedWords = {"none", "all"};
inline constexpr std::string_view kAllVlans = "all";

inline constexpr auto kHcaKeys =
    std::to_array<std::string_view>({"ports", "personality", "description", "guid", "port_guids"});
inline constexpr auto kHostKeys = std::to_array<std::string_view>(
    {"hcas", "ports", "personality", "description", "guid", "port_guids"});
inline constexpr auto kSwitchKeys =
    std::to_array<std::string_view>({"ports", "description", "guid", "forwarding", "delay"});
inline constexpr auto kLinkKeys =
    std::to_array<std::string_view>({"ends", "pattern", "count", "rate", "latency", "mtu", "vls",
                                     "buffer", "layer", "pfc", "vlans"});
inline constexpr auto kLinkDefaultKeys = std::to_array<std::string_view>(
    {"rate", "latency", "mtu", "vls", "buffer", "layer", "pfc", "vlans"});

// Reads fields whose keys have been checked; attributes that are not there are left out.
NodeAttributes read_node(const yaml::Fields& fields, NodeKind kind,
                         std::span<const std::string_view> personalities);
LinkAttributes read_link(const yaml::Fields& fields);

}  // namespace fabric
