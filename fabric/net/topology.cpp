#include "fabric/net/topology.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/assert.hpp"
#include "fabric/core/event.hpp"

namespace fabric {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_name_character(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

// Takes a run of digits from the front, without leading zeros.
std::string_view take_number(std::string_view& text) {
    const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
    std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(digits.size());
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
}

std::optional<std::string> error_in_node(const NodeSpec& node) {
    if (node.name.empty() || !std::all_of(node.name.begin(), node.name.end(), is_name_character)) {
        return fmt::format("node name \"{}\": a name is one or more letters, digits, '_' and '.'",
                           node.name);
    }
    const bool is_switch = node.kind == NodeKind::kSwitch;
    const std::uint16_t limit = is_switch ? Topology::kMaxSwitchPorts : Topology::kMaxHcaPorts;
    if (node.port_count == 0 || node.port_count > limit) {
        return fmt::format("{} {} has {} ports: 1 to {} are possible", to_string(node.kind),
                           node.name, node.port_count, limit);
    }
    return std::nullopt;
}

using NodesByName = std::map<std::string_view, const NodeSpec*>;
using UsedPorts = std::set<std::pair<std::string_view, PortNumber>>;

std::optional<std::string> error_in_end(const LinkEndSpec& end, const NodesByName& nodes,
                                        UsedPorts& used) {
    const auto node = nodes.find(end.node);
    if (node == nodes.end()) {
        return fmt::format("a link ends at \"{}\", which is no node of this topology", end.node);
    }
    const std::uint16_t port_count = node->second->port_count;
    if (end.port.value() == 0 || end.port.value() > port_count) {
        return fmt::format("a link ends at port {} of {}, which has ports 1 to {}",
                           end.port.value(), end.node, port_count);
    }
    if (!used.insert({node->first, end.port}).second) {
        return fmt::format("port {} of {} has two links", end.port.value(), end.node);
    }
    return std::nullopt;
}

std::optional<std::string> error_in_link(const LinkSpec& link, const NodesByName& nodes,
                                         UsedPorts& used) {
    for (const LinkEndSpec* const end : {&link.a, &link.b}) {
        if (auto error = error_in_end(*end, nodes, used)) {
            return error;
        }
    }
    if (link.a.node == link.b.node) {
        return fmt::format("a link connects {} with itself", link.a.node);
    }
    if (link.latency < SimDuration::zero()) {
        return fmt::format("the link of {} and {} has a negative latency", link.a.node,
                           link.b.node);
    }
    return std::nullopt;
}

// An Ethernet switch joins hosts and no other switch, so that a flooded frame never comes round; a
// host has one Ethernet port, since it has one IP address.
std::optional<std::string> error_in_ethernet(const std::vector<LinkSpec>& links,
                                             const NodesByName& nodes) {
    std::map<std::string_view, LinkLayer> switches;
    std::set<std::string_view> ip_hosts;
    for (const LinkSpec& link : links) {
        const bool ethernet = link.layer == LinkLayer::kEthernet;
        if (ethernet && (link.ethernet_mtu < Topology::kMinEthernetMtu ||
                         link.ethernet_mtu > Topology::kMaxEthernetMtu)) {
            return fmt::format(
                "the link of {} and {} has an MTU of {} bytes: {} to {} are possible", link.a.node,
                link.b.node, link.ethernet_mtu, Topology::kMinEthernetMtu,
                Topology::kMaxEthernetMtu);
        }
        unsigned switch_ends = 0;
        for (const LinkEndSpec* const end : {&link.a, &link.b}) {
            const NodeSpec& node = *nodes.at(end->node);
            if (node.kind == NodeKind::kHca) {
                if (ethernet && !ip_hosts.insert(node.name).second) {
                    return fmt::format("{} has two Ethernet ports: one is possible", node.name);
                }
                continue;
            }
            ++switch_ends;
            if (switches.emplace(node.name, link.layer).first->second != link.layer) {
                return fmt::format("switch {} has links of both link layers", node.name);
            }
        }
        if (ethernet && switch_ends == 2) {
            return fmt::format("the Ethernet switches {} and {} are linked: a switch joins hosts",
                               link.a.node, link.b.node);
        }
    }
    const auto hosts =
        static_cast<std::uint32_t>(std::count_if(nodes.begin(), nodes.end(), [](const auto& entry) {
            return entry.second->kind == NodeKind::kHca;
        }));
    if (!ip_hosts.empty() && hosts > kMaxIpHosts) {
        return fmt::format("{} hosts: {} have an IP address", hosts, kMaxIpHosts);
    }
    return std::nullopt;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
    const std::pair whole{a, b};
    while (!a.empty() && !b.empty()) {
        if (is_digit(a.front()) && is_digit(b.front())) {
            const std::string_view number_a = take_number(a);
            const std::string_view number_b = take_number(b);
            const auto key_a = std::tuple(number_a.size(), number_a);
            const auto key_b = std::tuple(number_b.size(), number_b);
            if (key_a != key_b) {
                return key_a < key_b;
            }
            continue;
        }
        if (a.front() != b.front()) {
            return a.front() < b.front();
        }
        a.remove_prefix(1);
        b.remove_prefix(1);
    }
    if (a.empty() != b.empty()) {
        return a.empty();
    }
    return whole.first < whole.second;  // equal but for leading zeros: still one fixed order
}

std::optional<std::string> Topology::error() const {
    if (nodes.empty()) {
        return "a topology has at least one node";
    }
    if (nodes.size() >= EventKey::kMaxNode) {
        return fmt::format("{} nodes: fewer than {} are possible", nodes.size(),
                           EventKey::kMaxNode);
    }
    NodesByName by_name;
    for (const NodeSpec& node : nodes) {
        if (auto error = error_in_node(node)) {
            return error;
        }
        if (!by_name.emplace(node.name, &node).second) {
            return fmt::format("two nodes are called {}", node.name);
        }
    }
    UsedPorts used;
    for (const LinkSpec& link : links) {
        if (auto error = error_in_link(link, by_name, used)) {
            return error;
        }
    }
    return error_in_ethernet(links, by_name);
}

void Topology::sort() {
    std::sort(nodes.begin(), nodes.end(), [](const NodeSpec& a, const NodeSpec& b) {
        return a.kind != b.kind ? a.kind < b.kind : natural_less(a.name, b.name);
    });
    std::map<std::string_view, std::size_t> rank;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        rank.emplace(nodes[i].name, i);
    }
    const auto key = [&rank](const LinkEndSpec& end) {
        return std::pair(rank.at(end.node), end.port);
    };
    for (LinkSpec& link : links) {
        if (key(link.b) < key(link.a)) {
            std::swap(link.a, link.b);
        }
    }
    std::sort(links.begin(), links.end(),
              [&key](const LinkSpec& a, const LinkSpec& b) { return key(a.a) < key(b.a); });
}

Topology make_pair(LinkLayer layer) {
    Topology topology;
    topology.nodes = {{"h0", NodeKind::kHca, 1}, {"h1", NodeKind::kHca, 1}};
    LinkSpec link;
    link.a.node = "h0";
    link.b.node = "h1";
    link.layer = layer;
    topology.links = {link};
    return topology;
}

Topology make_star(std::uint32_t hosts, LinkLayer layer) {
    SIMVERBS_ASSERT(hosts >= 2 && hosts <= Topology::kMaxStarHosts, "a star of {} hosts", hosts);
    Topology topology;
    for (std::uint32_t i = 0; i < hosts; ++i) {
        topology.nodes.push_back({fmt::format("h{}", i), NodeKind::kHca, 1});
        LinkSpec link;
        link.a.node = topology.nodes.back().name;
        link.b = {"s0", PortNumber{static_cast<std::uint16_t>(i + 1)}};
        link.layer = layer;
        topology.links.push_back(link);
    }
    topology.nodes.push_back({"s0", NodeKind::kSwitch, static_cast<std::uint16_t>(hosts)});
    return topology;
}

Topology make_vpi_pair() {
    Topology topology = make_pair();
    for (NodeSpec& node : topology.nodes) {
        node.port_count = 2;
    }
    LinkSpec ethernet = topology.links[0];
    ethernet.a.port = ethernet.b.port = PortNumber{2};
    ethernet.layer = LinkLayer::kEthernet;
    topology.links.push_back(ethernet);
    return topology;
}

TopologyResult make_topology(std::string_view spec) {
    constexpr std::string_view kEthernet = "eth-";
    constexpr std::string_view kStar = "star:";
    if (spec == "vpi-pair") {
        return {make_vpi_pair(), {}};
    }
    std::string_view shape = spec;
    LinkLayer layer = LinkLayer::kInfiniband;
    if (shape.starts_with(kEthernet)) {
        shape.remove_prefix(kEthernet.size());
        layer = LinkLayer::kEthernet;
    }
    if (shape == "pair") {
        return {make_pair(layer), {}};
    }
    if (!shape.starts_with(kStar)) {
        return {std::nullopt, fmt::format("\"{}\" is no topology: say \"pair\" or \"star:N\", "
                                          "\"eth-pair\" or \"eth-star:N\", or \"vpi-pair\"",
                                          spec)};
    }
    const std::string_view digits = shape.substr(kStar.size());
    std::uint32_t hosts = 0;
    const auto [end, status] = std::from_chars(digits.begin(), digits.end(), hosts);
    if (status != std::errc{} || end != digits.end() || hosts < 2 ||
        hosts > Topology::kMaxStarHosts) {
        return {std::nullopt, fmt::format("\"{}\": the N of \"star:N\" is a number from 2 to {}",
                                          spec, Topology::kMaxStarHosts)};
    }
    return {make_star(hosts, layer), {}};
}

}  // namespace fabric
