#include "fabric/topology/ibnetdiscover_text.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>

#include "fabric/topology/ibnetdiscover_records.hpp"

namespace fabric {

namespace {

using ibnetdiscover::NodeRecord;
using ibnetdiscover::PortRecord;
using ibnetdiscover::Records;

std::string as_name(std::string_view text) {
    std::string name(text);
    std::replace_if(
        name.begin(), name.end(),
        [](char c) {
            return !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '.');
        },
        '_');
    return name;
}

// "H-0002c90300a1b2c3": the GUID of such an id.
std::optional<Guid> guid_in_id(std::string_view id) {
    constexpr std::size_t kDigits = 16;
    if (id.size() != 2 + kDigits || (id[0] != 'S' && id[0] != 'H') || id[1] != '-') {
        return std::nullopt;
    }
    std::uint64_t value = 0;
    for (const char c : id.substr(2)) {
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) {
            return std::nullopt;
        }
        value = value << 4U | static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
    }
    return Guid(value);
}

struct Naming {
    std::string host;  // empty: as the node
    std::string device;
    std::string name;
};

// From id and description alone.
Naming naming_of(const NodeRecord& node) {
    Naming naming;
    const std::size_t space = node.description.find(' ');
    if (node.kind == NodeKind::kHca && space != std::string::npos && space > 0 &&
        space + 1 < node.description.size() &&
        node.description.find(' ', space + 1) == std::string::npos) {
        naming.host = as_name(node.description.substr(0, space));
        naming.device = as_name(node.description.substr(space + 1));
    }
    if (!guid_in_id(node.id)) {
        naming.name = as_name(node.id);
    } else if (naming.host.empty()) {
        naming.name = as_name(node.description.empty() ? node.id : node.description);
    } else if (naming.device.starts_with(naming.host + ".")) {
        naming.name = naming.device;  // as description_of() has it
    }
    return naming;
}

std::vector<Naming> name_all(const std::vector<NodeRecord>& nodes) {
    std::vector<Naming> names;
    std::map<std::string, int> hcas;
    for (const NodeRecord& node : nodes) {
        names.push_back(naming_of(node));
        ++hcas[names.back().host];
    }
    std::map<std::string, int> taken;
    for (Naming& naming : names) {
        if (naming.name.empty()) {
            naming.name = hcas[naming.host] == 1 ? naming.host
                                                 : fmt::format("{}.{}", naming.host, naming.device);
        }
        ++taken[naming.name];
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (taken[names[i].name] > 1) {
            names[i].name = as_name(nodes[i].id);
        }
    }
    return names;
}

NodeSpec spec_of(const NodeRecord& node, const Naming& naming) {
    NodeSpec spec;
    spec.name = naming.name;
    spec.kind = node.kind;
    spec.port_count = node.port_count;
    spec.host = naming.host == naming.name ? std::string() : naming.host;
    spec.guid = guid_in_id(node.id).value_or(node.guid);
    if (node.kind == NodeKind::kHca) {
        for (const auto& [number, port] : node.ports) {
            if (port.guid != Guid{} && port.guid.value() != spec.guid.value() + number) {
                spec.port_guids.resize(std::max<std::size_t>(spec.port_guids.size(), number));
                spec.port_guids[number - 1U] = port.guid;
            }
        }
    }
    if (node.description != description_of(spec)) {
        spec.description = node.description;
    }
    return spec;
}

// The best that both ends may run at; nothing when they share none.
template <class Value, class Rows, class Member>
std::optional<Value> best_of(const Rows& rows, Member member, unsigned mask) {
    std::optional<Value> best;
    for (const auto& row : rows) {
        best = (static_cast<unsigned>(row.*member) & mask) != 0 ? row.*member : best;
    }
    return best;
}

std::string set_rate(LinkSpec& link, const PortRecord& a, const PortRecord& b) {
    const bool differ =
        (a.width && b.width && a.width != b.width) || (a.speed && b.speed && a.speed != b.speed);
    const unsigned widths = a.widths & b.widths;
    const unsigned speeds = a.speeds & b.speeds;
    const auto width = best_of<LinkWidth>(kLinkWidths, &LinkWidthProperties::width, widths);
    const auto speed = best_of<LinkSpeed>(kLinkSpeeds, &LinkSpeedProperties::speed, speeds);
    if (differ || !width || !speed) {
        return "the ends of this link have no width and speed in common";
    }
    if (widths != ~0U) {
        link.width = *width;
    }
    if (speeds != ~0U) {
        link.speed = *speed;
    }
    link.width = a.width.value_or(b.width.value_or(link.width));
    link.speed = a.speed.value_or(b.speed.value_or(link.speed));
    if (a.vls && b.vls) {
        link.vls = std::min(*a.vls, *b.vls);
    }
    return {};
}

// Makes one link of two ports that name each other, entered from the end that comes first.
class LinkMaker {
  public:
    LinkMaker(const Records& records, const std::vector<Naming>& names)
        : records_(records), names_(names) {
        for (std::size_t i = 0; i < records.nodes.size(); ++i) {
            by_id_.emplace(records.nodes[i].id, i);
        }
    }

    std::string make_from(std::size_t index, std::vector<LinkSpec>& links) const {
        const NodeRecord& node = records_.nodes[index];
        for (const auto& [number, port] : node.ports) {
            const auto remote = by_id_.find(port.remote_id);
            if (remote == by_id_.end()) {
                return records_.at(port.place,
                                   fmt::format("there is no node \"{}\"", port.remote_id));
            }
            const NodeRecord& there = records_.nodes[remote->second];
            const auto back = there.ports.find(port.remote_port);
            if (back == there.ports.end() || back->second.remote_id != node.id ||
                back->second.remote_port != number) {
                return records_.at(port.place,
                                   fmt::format("port {} of {} does not lead back to port {} of {}",
                                               port.remote_port, there.id, number, node.id));
            }
            const auto here_end = std::pair(index, number);
            if (std::pair(remote->second, port.remote_port) < here_end) {
                continue;
            }
            LinkSpec link;
            link.a = {names_[index].name, PortNumber{number}};
            link.b = {names_[remote->second].name, PortNumber{port.remote_port}};
            if (const std::string error = set_rate(link, port, back->second); !error.empty()) {
                return records_.at(port.place, error);
            }
            links.push_back(std::move(link));
        }
        return {};
    }

  private:
    const Records& records_;
    const std::vector<Naming>& names_;
    std::map<std::string_view, std::size_t> by_id_;
};

std::string twice_used_id(const Records& records) {
    std::map<std::string_view, const NodeRecord*> by_id;
    for (const NodeRecord& node : records.nodes) {
        const auto [first, fresh] = by_id.emplace(node.id, &node);
        if (!fresh) {
            return records.at(node.place, fmt::format("a second node \"{}\": the first is in line "
                                                      "{}",
                                                      node.id, first->second->place.line));
        }
    }
    return {};
}

}  // namespace

Outcome<Topology> read_ibnetdiscover(std::string_view text, const std::string& file) {
    const Records records = ibnetdiscover::parse(text, file);
    std::string error = records.error.empty() ? twice_used_id(records) : records.error;
    const std::vector<Naming> names = name_all(records.nodes);
    const LinkMaker links(records, names);
    Topology topology;
    for (std::size_t i = 0; error.empty() && i < records.nodes.size(); ++i) {
        topology.nodes.push_back(spec_of(records.nodes[i], names[i]));
        error = links.make_from(i, topology.links);
    }
    if (error.empty()) {
        if (const auto wrong = topology.error()) {
            error = fmt::format("{}: {}", file, *wrong);
        }
    }
    if (!error.empty()) {
        return Failure(std::move(error));
    }
    topology.sort();
    return topology;
}

namespace {

struct PortLine {
    const LinkSpec* link;
    const LinkEndSpec* remote;
};

class Writer {
  public:
    explicit Writer(const Topology& sorted) : topology_(sorted) {
        for (std::size_t i = 0; i < sorted.nodes.size(); ++i) {
            ids_.emplace(sorted.nodes[i].name, NodeId{static_cast<std::uint32_t>(i)});
        }
        for (const LinkSpec& link : sorted.links) {
            lines_[{link.a.node, link.a.port.value()}] = {&link, &link.b};
            lines_[{link.b.node, link.b.port.value()}] = {&link, &link.a};
        }
    }

    void write(const NodeSpec& node) {
        const bool is_switch = node.kind == NodeKind::kSwitch;
        const std::uint64_t guid = node_guid(node, ids_.at(node.name)).value();
        fmt::format_to(out(), "\nsysimgguid={:#x}\n{}guid={:#x}", guid, is_switch ? "switch" : "ca",
                       guid);
        if (is_switch) {
            fmt::format_to(out(), "({:x})", guid);
        }
        fmt::format_to(out(), "\n{}\t{} \"{}\"\t\t# \"{}\"{}\n", is_switch ? "Switch" : "Ca",
                       node.port_count, node.name, description_of(node),
                       is_switch ? " base port 0 lid 0 lmc 0" : "");
        auto line = lines_.lower_bound({node.name, 0});
        for (; line != lines_.end() && line->first.first == node.name; ++line) {
            write_port(node, line->first.second, line->second);
        }
    }

    std::string take() { return std::move(text_); }

  private:
    std::back_insert_iterator<std::string> out() { return std::back_inserter(text_); }

    void write_port_guid(const NodeSpec& node, std::uint16_t number) {
        if (node.kind == NodeKind::kHca) {
            const Guid guid = port_guid(node, ids_.at(node.name), PortNumber{number});
            fmt::format_to(out(), "({:x}) ", guid.value());
        }
    }

    void write_port(const NodeSpec& node, std::uint16_t number, const PortLine& line) {
        const NodeSpec& remote = topology_.nodes[ids_.at(line.remote->node).value()];
        const LinkSpec& link = *line.link;
        fmt::format_to(out(), "[{}]", number);
        write_port_guid(node, number);
        fmt::format_to(out(), "\t\"{}\"[{}]", remote.name, line.remote->port.value());
        write_port_guid(remote, line.remote->port.value());
        if (link.speed <= LinkSpeed::kQdr) {  // ibsim knows no others
            fmt::format_to(out(), " w={} s={}", static_cast<unsigned>(link.width),
                           static_cast<unsigned>(link.speed));
        }
        fmt::format_to(out(), "\t\t# {}\"{}\" lid 0 {}{}\n",
                       node.kind == NodeKind::kHca ? "lid 0 lmc 0 " : "", description_of(remote),
                       to_string(link.width), to_string(link.speed));
    }

    const Topology& topology_;
    std::map<std::string_view, NodeId> ids_;
    std::map<std::pair<std::string_view, std::uint16_t>, PortLine> lines_;
    std::string text_;
};

}  // namespace

Outcome<std::string> write_ibnetdiscover(const Topology& topology) {
    for (const LinkSpec& link : topology.links) {
        if (link.layer == LinkLayer::kEthernet) {
            return Failure(
                fmt::format("the link of {} and {} is Ethernet, which ibnetdiscover's format "
                            "does not have",
                            link.a.node, link.b.node));
        }
    }
    for (const NodeSpec& node : topology.nodes) {
        if (node.description.find_first_of("\"\n") != std::string::npos) {
            return Failure(
                fmt::format("{} has a quote or a line end in its description", node.name));
        }
    }
    Topology sorted = topology;
    sorted.sort();
    Writer writer(sorted);
    for (const NodeKind kind : {NodeKind::kSwitch, NodeKind::kHca}) {
        for (const NodeSpec& node : sorted.nodes) {
            if (node.kind == kind) {
                writer.write(node);
            }
        }
    }
    return writer.take();
}

}  // namespace fabric
