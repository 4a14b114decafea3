#include "fabric/net/topology.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/event.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/vl_arbitration.hpp"

namespace fabric {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_name_character(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

constexpr std::string_view kNameRule = "a name is one or more letters, digits, '_' and '.'";

bool is_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), is_name_character);
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
    if (!is_name(node.name)) {
        return fmt::format("node name \"{}\": {}", node.name, kNameRule);
    }
    const bool is_switch = node.kind == NodeKind::kSwitch;
    const std::uint16_t limit = is_switch ? Topology::kMaxSwitchPorts : Topology::kMaxHcaPorts;
    if (node.port_count == 0 || node.port_count > limit) {
        return fmt::format("{} {} has {} ports: 1 to {} are possible", to_string(node.kind),
                           node.name, node.port_count, limit);
    }
    if (node.description.size() > Topology::kMaxDescriptionBytes) {
        return fmt::format("{} is described in {} bytes: {} are possible", node.name,
                           node.description.size(), Topology::kMaxDescriptionBytes);
    }
    if (is_switch) {
        if (!node.host.empty() || !node.personality.empty() || !node.port_guids.empty()) {
            return fmt::format("{} has what only an HCA has: host, personality or GUIDs of ports",
                               node.name);
        }
        if (node.forwarding_delay < SimDuration::zero()) {
            return fmt::format("switch {} forwards after a negative delay", node.name);
        }
        return std::nullopt;
    }
    if (node.port_guids.size() > node.port_count) {
        return fmt::format("{} has GUIDs of {} ports and {} ports", node.name,
                           node.port_guids.size(), node.port_count);
    }
    if (!is_name(host_of(node))) {
        return fmt::format("host name \"{}\": {}", node.host, kNameRule);
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
    constexpr std::array<std::uint8_t, 5> kLaneCounts = {1, 2, 4, 8, kMaxDataVls};
    if (std::find(kLaneCounts.begin(), kLaneCounts.end(), link.vls) == kLaneCounts.end()) {
        return fmt::format("the link of {} and {} has {} VLs: 1, 2, 4, 8 and 15 are possible",
                           link.a.node, link.b.node, link.vls);
    }
    if (link.buffer_bytes != 0 &&
        (link.buffer_bytes < Topology::kMinBufferBytes || link.buffer_bytes > kMaxBufferBytes)) {
        return fmt::format(
            "the link of {} and {} buffers {} bytes a VL: {} to {} are possible, or 0 for no flow "
            "control",
            link.a.node, link.b.node, link.buffer_bytes, Topology::kMinBufferBytes,
            kMaxBufferBytes);
    }
    return std::nullopt;
}

// An HCA may be called as its own host only.
std::optional<std::string> error_in_hosts(const NodesByName& nodes) {
    std::map<std::string_view, std::uint32_t> hcas;
    for (const auto& [name, node] : nodes) {
        if (node->kind == NodeKind::kHca && ++hcas[host_of(*node)] > Topology::kMaxHcasOfHost) {
            return fmt::format("host {} has more than {} HCAs", host_of(*node),
                               Topology::kMaxHcasOfHost);
        }
        const auto same = nodes.find(host_of(*node));
        if (node->kind == NodeKind::kHca && same != nodes.end() &&
            host_of(*same->second) != same->first) {
            return fmt::format("{} is a host, and an HCA of host {}", same->first,
                               host_of(*same->second));
        }
        if (node->kind == NodeKind::kHca && same != nodes.end() &&
            same->second->kind == NodeKind::kSwitch) {
            return fmt::format("{} is a host and a switch", same->first);
        }
    }
    return std::nullopt;
}

std::optional<std::string> error_in_queueing(const LinkSpec& link) {
    const EthernetQueueing& queueing = link.queueing;
    const bool marks = queueing.mark_all_bytes != 0;
    if (marks && (queueing.mark_from_bytes > queueing.mark_all_bytes ||
                  queueing.mark_probability.denominator == 0 ||
                  queueing.mark_probability.numerator > queueing.mark_probability.denominator)) {
        return fmt::format(
            "the link of {} and {} marks from {} bytes, all from {}, with a "
            "probability of {}/{}: that does not rise from nothing to one",
            link.a.node, link.b.node, queueing.mark_from_bytes, queueing.mark_all_bytes,
            queueing.mark_probability.numerator, queueing.mark_probability.denominator);
    }
    if (queueing.paused_priorities != 0 && queueing.resume_bytes > queueing.pause_bytes) {
        return fmt::format(
            "the link of {} and {} pauses above {} bytes and resumes at {}, which "
            "is more",
            link.a.node, link.b.node, queueing.pause_bytes, queueing.resume_bytes);
    }
    return std::nullopt;
}

// Each node's GUID differs, and each port's; a port may have its node's.
std::optional<std::string> error_in_guids(const Topology& sorted) {
    std::map<Guid, std::string_view> nodes;
    std::map<Guid, std::string> ports;
    for (std::size_t i = 0; i < sorted.nodes.size(); ++i) {
        const NodeSpec& node = sorted.nodes[i];
        const NodeId id{static_cast<std::uint32_t>(i)};
        const auto [same, fresh] = nodes.emplace(node_guid(node, id), node.name);
        if (!fresh) {
            return fmt::format("{} and {} have the GUID {:#018x}", same->second, node.name,
                               same->first.value());
        }
        for (std::uint16_t n = 1; node.kind == NodeKind::kHca && n <= node.port_count; ++n) {
            std::string name = fmt::format("port {} of {}", n, node.name);
            const auto [other, unused] =
                ports.emplace(port_guid(node, id, PortNumber{n}), std::move(name));
            if (!unused) {
                return fmt::format("{} and port {} of {} have the GUID {:#018x}", other->second, n,
                                   node.name, other->first.value());
            }
        }
    }
    return std::nullopt;
}

// Every port of an HCA and every switch has a LID; Ethernet has none.
std::optional<std::string> error_in_lids(const Topology& topology, const NodesByName& nodes) {
    std::uint64_t lids = 0;
    for (const NodeSpec& node : topology.nodes) {
        lids += node.kind == NodeKind::kHca ? node.port_count : 1U;
    }
    std::set<std::string_view> ethernet_switches;
    for (const LinkSpec& link : topology.links) {
        for (const LinkEndSpec* const end : {&link.a, &link.b}) {
            if (link.layer != LinkLayer::kEthernet) {
                continue;
            }
            const bool is_hca = nodes.at(end->node)->kind == NodeKind::kHca;
            lids -= is_hca || ethernet_switches.insert(end->node).second ? 1 : 0;
        }
    }
    if (lids > kLastUnicastLid.value()) {
        return fmt::format("{} ports and switches need a LID: there are {}", lids,
                           kLastUnicastLid.value());
    }
    return std::nullopt;
}

std::optional<std::string> error_in_vlans(const LinkSpec& link, bool is_of_host) {
    const std::vector<std::uint16_t>& vlans = *link.vlans;
    const auto wrong = std::find_if(vlans.begin(), vlans.end(), [](std::uint16_t vlan) {
        return vlan < kFirstVlan || vlan > kLastVlan;
    });
    if (wrong != vlans.end()) {
        return fmt::format("the link of {} and {} is in VLAN {}: {} to {} are possible",
                           link.a.node, link.b.node, *wrong, kFirstVlan, kLastVlan);
    }
    if (std::adjacent_find(vlans.begin(), vlans.end(), std::greater_equal<>()) != vlans.end()) {
        return fmt::format("the VLANs of the link of {} and {} do not ascend", link.a.node,
                           link.b.node);
    }
    if (is_of_host && vlans.size() > Topology::kMaxVlansOfHost) {
        return fmt::format("the link of {} and {} is in {} VLANs: a host has addresses in {}",
                           link.a.node, link.b.node, vlans.size(), Topology::kMaxVlansOfHost);
    }
    return std::nullopt;
}

// An HCA has one Ethernet port, since it has one IP address in each VLAN.
std::optional<std::string> error_in_ethernet(const std::vector<LinkSpec>& links,
                                             const NodesByName& nodes) {
    std::map<std::string_view, LinkLayer> switches;
    std::set<std::string_view> ip_hosts;
    for (const LinkSpec& link : links) {
        const bool ethernet = link.layer == LinkLayer::kEthernet;
        const std::uint32_t mtu = link.ethernet_mtu.value_or(kDefaultEthernetMtu);
        if (mtu < Topology::kMinEthernetMtu || mtu > Topology::kMaxEthernetMtu) {
            return fmt::format(
                "the link of {} and {} has an MTU of {} bytes: {} to {} are possible", link.a.node,
                link.b.node, mtu, Topology::kMinEthernetMtu, Topology::kMaxEthernetMtu);
        }
        bool is_of_host = false;
        for (const LinkEndSpec* const end : {&link.a, &link.b}) {
            const NodeSpec& node = *nodes.at(end->node);
            if (node.kind == NodeKind::kHca) {
                is_of_host = true;
                if (ethernet && !ip_hosts.insert(node.name).second) {
                    return fmt::format("{} has two Ethernet ports: one is possible", node.name);
                }
                continue;
            }
            if (switches.emplace(node.name, link.layer).first->second != link.layer) {
                return fmt::format("switch {} has links of both link layers", node.name);
            }
        }
        if (auto error = ethernet ? error_in_queueing(link) : std::nullopt) {
            return error;
        }
        if (link.vlans && !ethernet) {
            return fmt::format("the link of {} and {} has VLANs: those are Ethernet's", link.a.node,
                               link.b.node);
        }
        if (auto error = link.vlans ? error_in_vlans(link, is_of_host) : std::nullopt) {
            return error;
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

std::vector<std::uint16_t> Topology::vlans_of_hosts() const {
    std::set<std::string_view> hosts;
    for (const NodeSpec& node : nodes) {
        if (node.kind == NodeKind::kHca) {
            hosts.insert(node.name);
        }
    }
    std::set<std::uint16_t> vlans;
    for (const LinkSpec& link : links) {
        if (link.vlans && (hosts.contains(link.a.node) || hosts.contains(link.b.node))) {
            vlans.insert(link.vlans->begin(), link.vlans->end());
        }
    }
    return {vlans.begin(), vlans.end()};
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
    for (const auto& check : {error_in_hosts(by_name), error_in_lids(*this, by_name),
                              error_in_ethernet(links, by_name)}) {
        if (check) {
            return check;
        }
    }
    if (const std::size_t vlans = vlans_of_hosts().size(); vlans > kMaxVlanSubnets) {
        return fmt::format("hosts are in {} VLANs: {} are possible, each with its subnet", vlans,
                           kMaxVlanSubnets);
    }
    const bool given = std::any_of(nodes.begin(), nodes.end(), [](const NodeSpec& node) {
        return node.guid != Guid{} || !node.port_guids.empty();
    });
    if (!given) {
        return std::nullopt;  // ranks differ, and so do their GUIDs
    }
    Topology sorted = *this;
    sorted.sort();
    return error_in_guids(sorted);
}

void Topology::sort() {
    for (NodeSpec& node : nodes) {
        if (node.host == node.name) {
            node.host.clear();
        }
    }
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

const std::string& host_of(const NodeSpec& node) {
    return node.host.empty() ? node.name : node.host;
}

std::string description_of(const NodeSpec& node) {
    if (!node.description.empty()) {
        return node.description;
    }
    return host_of(node) == node.name ? node.name : fmt::format("{} {}", node.host, node.name);
}

Guid node_guid(const NodeSpec& node, NodeId id) {
    return node.guid == Guid{} ? make_guid(id, PortNumber{0}) : node.guid;
}

Guid port_guid(const NodeSpec& node, NodeId id, PortNumber port) {
    const std::size_t index = port.value() - std::size_t{1};
    if (port.value() != 0 && index < node.port_guids.size() && node.port_guids[index] != Guid{}) {
        return node.port_guids[index];
    }
    return Guid(node_guid(node, id).value() + port.value());
}

}  // namespace fabric
