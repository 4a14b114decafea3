#include "fabric/topology/yaml_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "fabric/core/nearest.hpp"
#include "fabric/topology/generators.hpp"
#include "fabric/topology/name_ranges.hpp"
#include "fabric/topology/yaml_attributes.hpp"

namespace fabric {

namespace {

constexpr auto kFileKeys = std::to_array<std::string_view>(
    {"generator", "routing", "defaults", "hosts", "switches", "links"});
constexpr auto kDefaultKeys = std::to_array<std::string_view>({"host", "switch", "link"});
constexpr auto kPatternWords = std::to_array<std::string_view>({"share", "all"});
enum class Pattern : std::uint8_t { kShare, kAll };

struct End {
    std::size_t node = 0;    // of Topology::nodes
    std::uint16_t port = 0;  // 0: the first that is free
};

struct PlannedLink {
    yaml::Position position;
    std::array<End, 2> ends;
    LinkSpec spec;
};

class Reader {
  public:
    Reader(std::vector<std::string> files, std::span<const std::string_view> personalities)
        : file_(files.front()), personalities_(personalities), errors_(std::move(files)) {}

    Outcome<Topology> read(std::string_view text) {
        if (const auto document = yaml::parse(text, errors_)) {
            read_document(*document);
        }
        return finish();
    }

    Outcome<Topology> read(const yaml::Value& document) {
        read_document(document);
        return finish();
    }

  private:
    Outcome<Topology> finish() {
        if (errors_.empty()) {
            if (const auto wrong = topology_.error()) {
                return Failure(fmt::format("{}: {}", file_, *wrong));
            }
            topology_.sort();
            return std::move(topology_);
        }
        return Failure(errors_.text());
    }

    void read_document(const yaml::Value& document) {
        const yaml::Fields fields(document, kFileKeys, errors_);
        if (const yaml::Value* const defaults = fields.find("defaults")) {
            read_defaults(*defaults);
        }
        if (const yaml::Value* const spec = fields.find("generator")) {
            generate(*spec);
        }
        if (const auto engine = fields.choice("routing", kRoutingEngineNames)) {
            topology_.routing = static_cast<RoutingEngine>(*engine);
        }
        if (const yaml::Value* const hosts = fields.find("hosts")) {
            read_nodes(*hosts, NodeKind::kHca);
        }
        if (const yaml::Value* const switches = fields.find("switches")) {
            read_nodes(*switches, NodeKind::kSwitch);
        }
        if (const yaml::Value* const links = fields.find("links")) {
            for (const yaml::Value& link : yaml::items_of(*links, errors_)) {
                read_links(link);
            }
        }
        plug_in();
    }

    void read_defaults(const yaml::Value& value) {
        const yaml::Fields fields(value, kDefaultKeys, errors_);
        constexpr auto kHost = std::to_array<std::string_view>({"ports", "personality"});
        constexpr auto kSwitch = std::to_array<std::string_view>({"ports", "forwarding", "delay"});
        if (const yaml::Value* const host = fields.find("host")) {
            host_ = read_node(yaml::Fields(*host, kHost, errors_), NodeKind::kHca, personalities_);
        }
        if (const yaml::Value* const one = fields.find("switch")) {
            switch_ = read_node(yaml::Fields(*one, kSwitch, errors_), NodeKind::kSwitch, {});
        }
        if (const yaml::Value* const link = fields.find("link")) {
            link_ = read_link(yaml::Fields(*link, kLinkDefaultKeys, errors_));
        }
    }

    [[nodiscard]] const NodeAttributes& defaults_of(NodeKind kind) const {
        return kind == NodeKind::kHca ? host_ : switch_;
    }

    // Its ports stay as many as its links need.
    void generate(const yaml::Value& value) {
        const auto spec = yaml::text_of(value, errors_);
        if (!spec) {
            return;
        }
        Outcome<Topology> made = generate_topology(*spec);
        if (!made) {
            errors_.add(value.position, made.error());
            return;
        }
        generated_ = true;
        topology_ = std::move(*made);
        for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
            NodeSpec& node = topology_.nodes[i];
            NodeAttributes defaults = defaults_of(node.kind);
            defaults.ports.reset();
            defaults.apply_to(node);
            nodes_.emplace(node.name, i);
        }
        for (std::size_t i = 0; i < topology_.links.size(); ++i) {
            LinkSpec& link = topology_.links[i];
            link_.apply_to(link, errors_);
            links_.emplace(std::minmax(nodes_.at(link.a.node), nodes_.at(link.b.node)), i);
        }
    }

    std::vector<std::string> expand(const yaml::Value& value, std::string_view pattern) {
        auto names = expand_ranges(pattern);
        if (!names) {
            errors_.add(value.position, names.error());
        }
        return names.value_or(std::vector<std::string>());
    }

    void read_nodes(const yaml::Value& value, NodeKind kind) {
        for (const auto& [pattern, attributes] : yaml::entries_of(value, errors_)) {
            const std::vector<std::string> names = expand(pattern, pattern.text);
            if (names.empty()) {
                continue;
            }
            const std::span<const std::string_view> keys =
                kind == NodeKind::kHca ? std::span<const std::string_view>(kHostKeys)
                                       : std::span<const std::string_view>(kSwitchKeys);
            const yaml::Fields fields(attributes, keys, errors_);
            const NodeAttributes node = read_node(fields, kind, personalities_);
            const yaml::Value* const hcas = fields.find("hcas");
            if (node.names_one_node() && (names.size() > 1 || hcas != nullptr)) {
                errors_.add(pattern.position,
                            "a GUID and a description belong to one node, not to several");
            } else if (generated_) {
                change_nodes(pattern, names, node, kind, hcas);
            } else if (hcas == nullptr) {
                for (const std::string& name : names) {
                    add_node(pattern, name, kind, {}, node);
                }
            } else {
                add_hcas(*hcas, names, node);
            }
        }
    }

    void change_nodes(const yaml::Value& pattern, const std::vector<std::string>& names,
                      const NodeAttributes& attributes, NodeKind kind, const yaml::Value* hcas) {
        if (hcas != nullptr) {
            errors_.add(hcas->position, "the generator has made an HCA a host");
            return;
        }
        for (const std::string& name : names) {
            const auto found = find_node(pattern, name);
            if (found && topology_.nodes[*found].kind == kind) {
                attributes.apply_to(topology_.nodes[*found]);
            } else if (found) {
                errors_.add(
                    pattern.position,
                    fmt::format("{} is a {}", name, kind == NodeKind::kHca ? "switch" : "host"));
            }
        }
    }

    // "2" is host.0 and host.1; a mapping has their names.
    void add_hcas(const yaml::Value& hcas, const std::vector<std::string>& hosts,
                  const NodeAttributes& common) {
        if (hcas.kind != yaml::Kind::kMapping) {
            const auto count = yaml::number_of(hcas, errors_, 1, Topology::kMaxHcasOfHost);
            for (const std::string& host : hosts) {
                for (std::uint64_t i = 0; i < count.value_or(0); ++i) {
                    add_node(hcas, *count == 1 ? host : fmt::format("{}.{}", host, i),
                             NodeKind::kHca, host, common);
                }
            }
            return;
        }
        if (hosts.size() > 1) {
            errors_.add(hcas.position, "HCAs with names of their own belong to one host");
            return;
        }
        for (const auto& [pattern, value] : hcas.entries) {
            NodeAttributes own =
                read_node(yaml::Fields(value, kHcaKeys, errors_), NodeKind::kHca, personalities_);
            own.ports = own.ports ? own.ports : common.ports;
            own.personality = own.personality ? own.personality : common.personality;
            for (const std::string& name : expand(pattern, pattern.text)) {
                add_node(pattern, name, NodeKind::kHca, hosts.front(), own);
            }
        }
    }

    void add_node(const yaml::Value& where, const std::string& name, NodeKind kind,
                  const std::string& host, const NodeAttributes& attributes) {
        NodeSpec node;
        node.name = name;
        node.kind = kind;
        node.host = host == name ? std::string() : host;
        node.port_count = 0;  // until somebody says, or its links do
        defaults_of(kind).apply_to(node);
        attributes.apply_to(node);
        if (!nodes_.emplace(name, topology_.nodes.size()).second) {
            errors_.add(where.position, fmt::format("a second node \"{}\"", name));
            return;
        }
        topology_.nodes.push_back(std::move(node));
    }

    std::optional<std::size_t> find_node(const yaml::Value& where, const std::string& name) {
        const auto found = nodes_.find(name);
        if (found != nodes_.end()) {
            return found->second;
        }
        std::vector<std::string_view> names;
        for (const auto& [known, unused] : nodes_) {
            names.push_back(known);
        }
        errors_.add(where.position,
                    fmt::format("unknown node \"{}\"{}", name, suggestion(name, names)));
        return std::nullopt;
    }

    // "h0..3" or "s0..1:1..8": a number after the colon is a port.
    std::vector<End> read_end(const yaml::Value& value) {
        const auto text = yaml::text_of(value, errors_);
        if (!text) {
            return {};
        }
        const std::size_t colon = std::min(text->rfind(':'), text->size());
        std::vector<std::uint16_t> ports{0};
        if (colon < text->size()) {
            ports.clear();
            for (const std::string& port : expand(value, text->substr(colon + 1))) {
                std::uint16_t number = 0;
                const auto [end, status] =
                    std::from_chars(port.data(), port.data() + port.size(), number);
                if (status != std::errc{} || end != port.data() + port.size() || number == 0) {
                    errors_.add(value.position,
                                fmt::format("\"{}\": expected the number of a port after the "
                                            "colon",
                                            *text));
                    return {};
                }
                ports.push_back(number);
            }
        }
        std::vector<End> ends;
        for (const std::string& name : expand(value, text->substr(0, colon))) {
            const auto node = find_node(value, name);
            for (const std::uint16_t port : ports) {
                if (node) {
                    ends.push_back({*node, port});
                }
            }
        }
        return ends;
    }

    void read_links(const yaml::Value& value) {
        const yaml::Fields fields(value, kLinkKeys, errors_);
        const LinkAttributes attributes = read_link(fields);
        const auto count = fields.get("count", yaml::number_of, std::uint64_t{1},
                                      std::uint64_t{Topology::kMaxSwitchPorts});
        const auto pattern =
            static_cast<Pattern>(fields.choice("pattern", kPatternWords).value_or(0));
        const yaml::Value* const ends = fields.find("ends");
        const std::span<const yaml::Value> both =
            ends == nullptr ? std::span<const yaml::Value>() : yaml::items_of(*ends, errors_);
        if (both.size() != 2) {
            errors_.add((ends == nullptr ? value : *ends).position,
                        "a link has two ends: \"ends: [h0, s0]\"");
            return;
        }
        const std::vector<End> a = read_end(both[0]);
        const std::vector<End> b = read_end(both[1]);
        if (a.empty() || b.empty()) {
            return;
        }
        for (const auto& [first, second] : pairs(ends->position, a, b, pattern)) {
            if (generated_) {
                change_links(ends->position, first, second, attributes);
                continue;
            }
            PlannedLink link{ends->position, {first, second}, {}};
            link_.apply_to(link.spec, errors_);
            attributes.apply_to(link.spec, errors_);
            plans_.insert(plans_.end(), count.value_or(1), link);
        }
    }

    // kShare: as many ends of the longer list for each of the shorter, in order.
    std::vector<std::pair<End, End>> pairs(yaml::Position position, const std::vector<End>& a,
                                           const std::vector<End>& b, Pattern pattern) {
        std::vector<std::pair<End, End>> all;
        if (pattern == Pattern::kAll) {
            for (const End& first : a) {
                for (const End& second : b) {
                    all.emplace_back(first, second);
                }
            }
            return all;
        }
        const std::size_t longer = std::max(a.size(), b.size());
        if (longer % a.size() != 0 || longer % b.size() != 0) {
            errors_.add(position, fmt::format("{} ends cannot be shared out evenly among {}: name "
                                              "others, or say \"pattern: all\" for a link between "
                                              "any two",
                                              longer, std::min(a.size(), b.size())));
            return {};
        }
        for (std::size_t i = 0; i < longer; ++i) {
            all.emplace_back(a[i * a.size() / longer], b[i * b.size() / longer]);
        }
        return all;
    }

    void change_links(yaml::Position position, const End& a, const End& b,
                      const LinkAttributes& attributes) {
        const auto [first, last] = links_.equal_range(std::minmax(a.node, b.node));
        bool changed = false;
        for (auto entry = first; entry != last; ++entry) {
            LinkSpec& link = topology_.links[entry->second];
            const bool turned = link.a.node != topology_.nodes[a.node].name;
            const auto is_port = [](const End& end, const LinkEndSpec& spec) {
                return end.port == 0 || end.port == spec.port.value();
            };
            if (is_port(a, turned ? link.b : link.a) && is_port(b, turned ? link.a : link.b)) {
                attributes.apply_to(link, errors_);
                changed = true;
            }
        }
        if (!changed) {
            errors_.add(position,
                        fmt::format("the generator has made no link between {} and {}",
                                    topology_.nodes[a.node].name, topology_.nodes[b.node].name));
        }
    }

    // Ports that were named first, then in the order of writing the first that is free.
    void plug_in() {
        std::vector<std::vector<bool>> used(topology_.nodes.size());
        const auto take = [this, &used](const PlannedLink& plan, const End& end) {
            std::vector<bool>& ports = used[end.node];
            ports.resize(std::max<std::size_t>(ports.size(), end.port + 1U));
            if (ports[end.port]) {
                errors_.add(plan.position, fmt::format("port {} of {} has two links", end.port,
                                                       topology_.nodes[end.node].name));
            }
            ports[end.port] = true;
        };
        for (const PlannedLink& plan : plans_) {
            for (const End& end : plan.ends) {
                if (end.port != 0) {
                    take(plan, end);
                }
            }
        }
        for (PlannedLink& plan : plans_) {
            for (End& end : plan.ends) {
                if (end.port == 0) {
                    const std::vector<bool>& ports = used[end.node];
                    end.port = 1;
                    while (end.port < ports.size() && ports[end.port]) {
                        ++end.port;
                    }
                    take(plan, end);
                }
            }
        }
        add_links(used);
    }

    void add_links(const std::vector<std::vector<bool>>& used) {
        for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
            NodeSpec& node = topology_.nodes[i];
            if (node.port_count == 0) {
                const std::size_t least = std::max<std::size_t>(used[i].size(), 2) - 1;
                const bool is_switch = node.kind == NodeKind::kSwitch;
                const std::uint16_t most =
                    is_switch ? Topology::kMaxSwitchPorts : Topology::kMaxHcaPorts;
                node.port_count = static_cast<std::uint16_t>(std::min<std::size_t>(least, most));
            }
        }
        for (PlannedLink& plan : plans_) {
            for (const End& end : plan.ends) {
                const NodeSpec& node = topology_.nodes[end.node];
                if (end.port > node.port_count) {
                    errors_.add(plan.position, fmt::format("{} has ports 1 to {}: this link needs "
                                                           "port {}",
                                                           node.name, node.port_count, end.port));
                }
            }
            const auto spec = [this](const End& end) {
                return LinkEndSpec{topology_.nodes[end.node].name, PortNumber{end.port}};
            };
            plan.spec.a = spec(plan.ends[0]);
            plan.spec.b = spec(plan.ends[1]);
            topology_.links.push_back(std::move(plan.spec));
        }
    }

    std::string file_;
    std::span<const std::string_view> personalities_;
    yaml::Errors errors_;
    Topology topology_;
    bool generated_ = false;
    NodeAttributes host_;
    NodeAttributes switch_;
    LinkAttributes link_;
    std::map<std::string, std::size_t, std::less<>> nodes_;
    std::multimap<std::pair<std::size_t, std::size_t>, std::size_t> links_;  // of the generator
    std::vector<PlannedLink> plans_;
};

}  // namespace

Outcome<Topology> read_yaml(std::string_view text, const std::string& file,
                            std::span<const std::string_view> personalities) {
    return Reader({file}, personalities).read(text);
}

Outcome<Topology> read_yaml(const yaml::Value& document, std::vector<std::string> files,
                            std::span<const std::string_view> personalities) {
    return Reader(std::move(files), personalities).read(document);
}

}  // namespace fabric
