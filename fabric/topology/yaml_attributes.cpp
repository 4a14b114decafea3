#include "fabric/topology/yaml_attributes.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "fabric/net/credits.hpp"
#include "fabric/net/mtu.hpp"

namespace fabric {

namespace {

std::optional<Guid> guid_of(const yaml::Value& value, yaml::Errors& errors) {
    const auto text = yaml::text_of(value, errors);
    if (!text) {
        return std::nullopt;
    }
    std::uint64_t guid = 0;
    const std::string_view digits =
        std::string_view(*text).substr(std::min<std::size_t>(2, text->size()));
    const auto [end, status] = std::from_chars(digits.begin(), digits.end(), guid, 16);
    if (!text->starts_with("0x") || status != std::errc{} || end != digits.end()) {
        errors.add(value.position,
                   fmt::format("\"{}\": expected a GUID, such as 0x0002c90300a1b2c3", *text));
        return std::nullopt;
    }
    return Guid(guid);
}

std::optional<std::vector<Guid>> guids_of(const yaml::Value& value, yaml::Errors& errors) {
    std::vector<Guid> guids;
    for (const yaml::Value& item : yaml::items_of(value, errors)) {
        guids.push_back(guid_of(item, errors).value_or(Guid{}));
    }
    return guids;
}

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::uint8_t priority_bit(const yaml::Value& value, yaml::Errors& errors) {
    const auto priority = yaml::number_of(value, errors, 0, kPriorities - 1);
    return static_cast<std::uint8_t>(priority ? 1U << *priority : 0U);
}

// Bit n: priority n. "none", "all", a number, or a list of numbers.
std::optional<std::uint8_t> paused_of(const yaml::Value& value, yaml::Errors& errors) {
    if (value.kind == yaml::Kind::kList) {
        std::uint8_t paused = 0;
        for (const yaml::Value& item : yaml::items_of(value, errors)) {
            paused |= priority_bit(item, errors);
        }
        return paused;
    }
    if (value.text == kPausedWords[0] || value.text == kPausedWords[1]) {
        return value.text == kPausedWords[0] ? std::uint8_t{0} : std::uint8_t{0xff};
    }
    if (!is_number(value.text)) {
        errors.add(
            value.position,
            fmt::format("\"{}\": valid: none, all, a priority from 0 to {}, or a list of them",
                        value.text, kPriorities - 1));
        return std::nullopt;
    }
    return priority_bit(value, errors);
}

// "all", an id, or a list of ids in any order.
std::optional<LinkAttributes::Vlans> vlans_of(const yaml::Value& value, yaml::Errors& errors) {
    if (value.kind == yaml::Kind::kScalar && value.text == kAllVlans) {
        return LinkAttributes::Vlans();
    }
    std::set<std::uint16_t> vlans;
    const auto add = [&errors, &vlans](const yaml::Value& item) {
        const auto vlan = yaml::number_of(item, errors, kFirstVlan, kLastVlan);
        if (vlan && !vlans.insert(static_cast<std::uint16_t>(*vlan)).second) {
            errors.add(item.position, fmt::format("VLAN {} a second time", *vlan));
        }
    };
    if (value.kind == yaml::Kind::kList) {
        for (const yaml::Value& item : yaml::items_of(value, errors)) {
            add(item);
        }
    } else if (!is_number(value.text)) {
        errors.add(value.position,
                   fmt::format("\"{}\": valid: all, a VLAN from {} to {}, or a list of them",
                               value.text, kFirstVlan, kLastVlan));
    } else {
        add(value);
    }
    return LinkAttributes::Vlans(std::in_place, vlans.begin(), vlans.end());
}

template <class Narrow>
std::optional<Narrow> narrowed(std::optional<std::uint64_t> wide) {
    return wide ? std::optional(static_cast<Narrow>(*wide)) : std::nullopt;
}

}  // namespace

void NodeAttributes::apply_to(NodeSpec& node) const {
    node.port_count = ports.value_or(node.port_count);
    node.personality = personality.value_or(node.personality);
    node.description = description.value_or(node.description);
    node.guid = guid.value_or(node.guid);
    node.port_guids = port_guids.value_or(node.port_guids);
    node.forwarding = forwarding.value_or(node.forwarding);
    node.forwarding_delay = delay.value_or(node.forwarding_delay);
}

// One key for both layers, since a link has one.
void LinkAttributes::apply_to(LinkSpec& link, yaml::Errors& errors) const {
    if (rate) {
        link.width = rate->width;
        link.speed = rate->speed;
    }
    link.latency = latency.value_or(link.latency);
    link.vls = vls.value_or(link.vls);
    link.buffer_bytes = buffer.value_or(link.buffer_bytes);
    link.layer = layer.value_or(link.layer);
    link.queueing.paused_priorities = paused_priorities.value_or(link.queueing.paused_priorities);
    link.vlans = vlans.value_or(link.vlans);
    if (!mtu) {
        return;
    }
    if (link.layer == LinkLayer::kEthernet) {
        link.ethernet_mtu = *mtu;
        return;
    }
    const auto step =
        std::find_if(kMtus.begin(), kMtus.end(), [this](Mtu one) { return to_bytes(one) == *mtu; });
    if (step == kMtus.end()) {
        errors.add(mtu_position, fmt::format("{}B: an MTU of InfiniBand is 256B, 512B, 1024B, "
                                             "2048B or 4096B",
                                             *mtu));
        return;
    }
    link.mtu = *step;
}

NodeAttributes read_node(const yaml::Fields& fields, NodeKind kind,
                         std::span<const std::string_view> personalities) {
    const bool is_switch = kind == NodeKind::kSwitch;
    const std::uint64_t most = is_switch ? Topology::kMaxSwitchPorts : Topology::kMaxHcaPorts;
    NodeAttributes node;
    node.ports =
        narrowed<std::uint16_t>(fields.get("ports", yaml::number_of, std::uint64_t{1}, most));
    node.description = fields.get("description", yaml::text_of);
    node.guid = fields.get("guid", guid_of);
    node.port_guids = fields.get("port_guids", guids_of);
    node.delay = fields.get("delay", yaml::duration_of);
    if (const auto word = fields.choice("forwarding", kForwardingWords)) {
        node.forwarding = static_cast<Forwarding>(*word);
    }
    if (personalities.empty()) {
        node.personality = fields.get("personality", yaml::text_of);
    } else if (const auto word = fields.choice("personality", personalities)) {
        node.personality = std::string(personalities[*word]);
    }
    return node;
}

LinkAttributes read_link(const yaml::Fields& fields) {
    LinkAttributes link;
    link.rate = fields.get("rate", yaml::link_rate_of);
    link.latency = fields.get("latency", yaml::duration_of);
    link.mtu = narrowed<std::uint32_t>(fields.get("mtu", yaml::bytes_of, std::uint64_t{256},
                                                  std::uint64_t{Topology::kMaxEthernetMtu}));
    if (const yaml::Value* const mtu = fields.find("mtu")) {
        link.mtu_position = mtu->position;
    }
    link.vls = narrowed<std::uint8_t>(
        fields.get("vls", yaml::number_of, std::uint64_t{1}, std::uint64_t{15}));
    link.buffer = narrowed<std::uint32_t>(
        fields.get("buffer", yaml::bytes_of, std::uint64_t{0}, std::uint64_t{kMaxBufferBytes}));
    if (const auto word = fields.choice("layer", kLayerWords)) {
        link.layer = *word == 0 ? LinkLayer::kInfiniband : LinkLayer::kEthernet;
    }
    link.paused_priorities = fields.get("pfc", paused_of);
    link.vlans = fields.get("vlans", vlans_of);
    return link;
}

}  // namespace fabric
