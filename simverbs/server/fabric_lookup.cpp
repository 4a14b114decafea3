#include "simverbs/server/fabric_lookup.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "fabric/core/nearest.hpp"

namespace simverbs {
namespace {

using fabric::Failure;
using fabric::Link;
using fabric::Node;
using fabric::Outcome;
using fabric::Port;
using fabric::PortNumber;

// The first few of many.
std::string list_of(std::span<const std::string_view> names) {
    constexpr std::size_t kMost = 12;
    std::string list;
    for (const std::string_view name : names.first(std::min(names.size(), kMost))) {
        list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
    }
    return list + (names.size() > kMost ? ", ..." : "");
}

}  // namespace

std::optional<std::uint32_t> parse_number(std::string_view text) {
    const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
    text.remove_prefix(is_hex ? 2 : 0);
    std::uint32_t number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    return is_whole ? std::optional(number) : std::nullopt;
}

Outcome<std::vector<Node*>> FabricLookup::nodes(const std::string& name) const {
    fabric::Network& network = simulation_.network();
    if (Node* const node = network.find_node(name); node != nullptr) {
        return std::vector<Node*>{node};
    }
    std::vector<Node*> hcas;
    for (std::size_t i = 0; i < network.host_count(); ++i) {
        if (network.host(i).host() == name) {
            hcas.push_back(&network.host(i));
        }
    }
    if (!hcas.empty()) {
        return hcas;
    }
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < network.node_count(); ++i) {
        names.push_back(network.node(fabric::NodeId{static_cast<std::uint32_t>(i)}).name());
    }
    return Failure(fmt::format("topology '{}' has no node '{}'{} (nodes: {})",
                               simulation_.topology(), name, fabric::suggestion(name, names),
                               list_of(names)));
}

Outcome<Link*> FabricLookup::link(const std::string& name) const {
    if (Link* const found = simulation_.network().find_link(name); found != nullptr) {
        return found;
    }
    const fabric::Network& network = simulation_.network();
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < network.link_count(); ++i) {
        names.push_back(network.link(i).name());
    }
    return Failure(fmt::format("topology '{}' has no link '{}'{} (links: {})",
                               simulation_.topology(), name, fabric::suggestion(name, names),
                               list_of(names)));
}

Outcome<Port*> FabricLookup::port(const std::string& name) const {
    const std::size_t colon = name.rfind(':');
    const std::string node_name = name.substr(0, colon);
    const Outcome<std::vector<Node*>> found = nodes(node_name);
    if (!found) {
        return Failure(found.error());
    }
    if (found->size() > 1) {
        std::string names;
        for (const Node* const hca : *found) {
            names += fmt::format("{}{}", names.empty() ? "" : " and ", hca->name());
        }
        return Failure(
            fmt::format("host {} has {}: name the port of one of them", node_name, names));
    }
    Node& owner = *found->front();
    const auto number = colon == std::string::npos
                            ? std::nullopt
                            : parse_number(std::string_view(name).substr(colon + 1));
    const std::uint16_t first = owner.kind() == fabric::NodeKind::kSwitch ? 0 : 1;
    if (!number || *number < first || *number > owner.port_count()) {
        const std::string last = fmt::format("{}:{}", node_name, owner.port_count());
        return Failure(first == owner.port_count()
                           ? fmt::format("'{}' is no port: {} has {} alone", name, node_name, last)
                           : fmt::format("'{}' is no port: {} has {}:{} to {}", name, node_name,
                                         node_name, first, last));
    }
    return &owner.port(PortNumber{static_cast<std::uint16_t>(*number)});
}

}  // namespace simverbs
