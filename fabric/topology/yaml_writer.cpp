// Topologies as YAML: what differs from the defaults of the specs, one line a node and a link.
#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "fabric/topology/yaml_attributes.hpp"
#include "fabric/topology/yaml_text.hpp"
#include "fabric/yaml/quantities.hpp"
#include "fabric/yaml/value.hpp"

namespace fabric {

namespace {

// "{ports: 2, personality: rxe}".
class FlowMapping {
  public:
    void add(std::string_view key, std::string_view value) {
        text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
    }
    [[nodiscard]] std::string text() const { return fmt::format("{{{}}}", text_); }
    [[nodiscard]] bool empty() const { return text_.empty(); }

  private:
    std::string text_;
};

std::string guid_text(Guid guid) {
    return fmt::format("{:#018x}", guid.value());
}

FlowMapping attributes_of(const NodeSpec& node) {
    const NodeSpec usual;
    FlowMapping attributes;
    if (node.kind == NodeKind::kSwitch || node.port_count != usual.port_count) {
        attributes.add("ports", std::to_string(node.port_count));
    }
    if (!node.personality.empty()) {
        attributes.add("personality", yaml::quoted_if_needed(node.personality));
    }
    if (!node.description.empty()) {
        attributes.add("description", yaml::quoted_if_needed(node.description));
    }
    if (node.guid != Guid{}) {
        attributes.add("guid", guid_text(node.guid));
    }
    if (!node.port_guids.empty()) {
        std::string list;
        for (const Guid guid : node.port_guids) {
            list += fmt::format("{}{}", list.empty() ? "" : ", ", guid_text(guid));
        }
        attributes.add("port_guids", fmt::format("[{}]", list));
    }
    if (node.forwarding != usual.forwarding) {
        attributes.add("forwarding", to_string(node.forwarding));
    }
    if (node.forwarding_delay != usual.forwarding_delay) {
        attributes.add("delay", yaml::duration_text(node.forwarding_delay));
    }
    return attributes;
}

FlowMapping attributes_of(const LinkSpec& link) {
    const LinkSpec usual;
    FlowMapping attributes;
    attributes.add("ends", fmt::format("[{}:{}, {}:{}]", link.a.node, link.a.port.value(),
                                       link.b.node, link.b.port.value()));
    if (link.width != usual.width || link.speed != usual.speed) {
        attributes.add("rate", yaml::link_rate_text({link.width, link.speed}));
    }
    if (link.latency != usual.latency) {
        attributes.add("latency", yaml::duration_text(link.latency));
    }
    if (link.layer == LinkLayer::kEthernet) {
        attributes.add("layer", kLayerWords[1]);
        if (link.queueing.paused_priorities != usual.queueing.paused_priorities) {
            attributes.add("pfc", pfc_text(link));
        }
        if (link.vlans) {
            attributes.add("vlans", vlans_text(link));
        }
        if (link.ethernet_mtu) {
            attributes.add("mtu", fmt::format("{}B", *link.ethernet_mtu));
        }
    } else if (link.mtu != usual.mtu) {
        attributes.add("mtu", fmt::format("{}B", to_bytes(link.mtu)));
    }
    if (link.vls != usual.vls) {
        attributes.add("vls", std::to_string(link.vls));
    }
    if (link.buffer_bytes != usual.buffer_bytes) {
        attributes.add("buffer", yaml::bytes_text(link.buffer_bytes));
    }
    return attributes;
}

}  // namespace

std::string pfc_text(const LinkSpec& link) {
    const std::uint8_t priorities = link.queueing.paused_priorities;
    if (priorities == 0 || priorities == 0xff) {
        return std::string(kPausedWords[priorities == 0 ? 0 : 1]);
    }
    std::string list;
    for (unsigned priority = 0; priority < kPriorities; ++priority) {
        if ((priorities >> priority & 1U) != 0) {
            list += fmt::format("{}{}", list.empty() ? "" : ", ", priority);
        }
    }
    return fmt::format("[{}]", list);
}

std::string vlans_text(const LinkSpec& link) {
    return link.vlans ? fmt::format("[{}]", fmt::join(*link.vlans, ", ")) : std::string(kAllVlans);
}

std::string write_yaml(const Topology& topology) {
    Topology sorted = topology;
    sorted.sort();
    std::string text;
    const auto line = [&text](int indent, std::string_view key, const FlowMapping& attributes) {
        text += fmt::format("{:{}}{}: {}\n", "", indent, yaml::quoted_if_needed(key),
                            attributes.text());
    };
    const auto first_switch =
        std::find_if(sorted.nodes.begin(), sorted.nodes.end(),
                     [](const NodeSpec& node) { return node.kind == NodeKind::kSwitch; });
    std::vector<std::string> hosts;
    std::map<std::string, std::vector<const NodeSpec*>> hcas;
    for (auto node = sorted.nodes.begin(); node != first_switch; ++node) {
        std::vector<const NodeSpec*>& of_host = hcas[host_of(*node)];
        if (of_host.empty()) {
            hosts.push_back(host_of(*node));
        }
        of_host.push_back(&*node);
    }
    if (sorted.routing != RoutingEngine::kAutomatic) {
        text += fmt::format("routing: {}\n", to_string(sorted.routing));
    }
    text += hosts.empty() ? "" : "hosts:\n";
    for (const std::string& host : hosts) {
        const std::vector<const NodeSpec*>& of_host = hcas[host];
        if (of_host.size() == 1 && of_host[0]->name == host) {
            line(2, host, attributes_of(*of_host[0]));
            continue;
        }
        text += fmt::format("  {}:\n    hcas:\n", yaml::quoted_if_needed(host));
        for (const NodeSpec* const hca : of_host) {
            line(6, hca->name, attributes_of(*hca));
        }
    }
    text += first_switch == sorted.nodes.end() ? "" : "switches:\n";
    for (auto node = first_switch; node != sorted.nodes.end(); ++node) {
        line(2, node->name, attributes_of(*node));
    }
    text += sorted.links.empty() ? "" : "links:\n";
    for (const LinkSpec& link : sorted.links) {
        text += fmt::format("  - {}\n", attributes_of(link).text());
    }
    return text;
}

}  // namespace fabric
