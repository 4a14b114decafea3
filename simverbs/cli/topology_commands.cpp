#include "simverbs/cli/topology_commands.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "fabric/net/topology.hpp"
#include "fabric/sm/routing/checks.hpp"
#include "fabric/sm/routing/engines.hpp"
#include "fabric/sm/routing/topology_graph.hpp"
#include "fabric/topology/generators.hpp"
#include "fabric/topology/ibnetdiscover_text.hpp"
#include "fabric/topology/load.hpp"
#include "fabric/topology/yaml_text.hpp"
#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/model/personalities.hpp"
#include "simverbs/server/text_table.hpp"

namespace simverbs::cli {
namespace {

using fabric::LinkSpec;
using fabric::NodeKind;
using fabric::NodeSpec;
using fabric::Topology;

std::optional<Topology> load(const std::string& spec) {
    std::vector<std::string_view> personalities;
    personalities.reserve(kPersonalities.size());
    for (const Personality* const known : kPersonalities) {
        personalities.push_back(known->name);
    }
    fabric::Outcome<Topology> result = fabric::load_topology(spec, personalities);
    if (!result) {
        fmt::print(stderr, "simverbs: {}\n", result.error());
        return std::nullopt;
    }
    return std::move(*result);
}

// Who is linked with whom, by rank; hosts come before switches.
class Neighbours {
  public:
    explicit Neighbours(const Topology& topology) : of_(topology.nodes.size()) {
        std::map<std::string_view, std::size_t> rank;
        for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
            rank.emplace(topology.nodes[i].name, i);
        }
        hcas_ = static_cast<std::size_t>(
            std::count_if(topology.nodes.begin(), topology.nodes.end(),
                          [](const NodeSpec& node) { return node.kind == NodeKind::kHca; }));
        for (const LinkSpec& link : topology.links) {
            const std::size_t a = rank.at(link.a.node);
            const std::size_t b = rank.at(link.b.node);
            of_[a].push_back(b);
            of_[b].push_back(a);
            between_switches_ += a >= hcas_ && b >= hcas_ ? 1 : 0;
        }
    }

    [[nodiscard]] std::size_t hcas() const { return hcas_; }
    [[nodiscard]] std::size_t between_switches() const { return between_switches_; }

    // Links from `start`, by rank; nothing where there is no way. HCAs forward nothing.
    [[nodiscard]] std::vector<std::optional<std::uint32_t>> links_from(std::size_t start) const {
        std::vector<std::optional<std::uint32_t>> links(of_.size());
        std::vector<std::size_t> queue{start};
        links[start] = 0;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            const std::size_t node = queue[i];
            if (node < hcas_ && node != start) {
                continue;
            }
            for (const std::size_t next : of_[node]) {
                if (!links[next]) {
                    links[next] = *links[node] + 1;
                    queue.push_back(next);
                }
            }
        }
        return links;
    }

    // One HCA a switch stands for the others of it with one link.
    [[nodiscard]] std::vector<std::size_t> different_hcas() const {
        std::set<std::size_t> seen;
        std::vector<std::size_t> some;
        for (std::size_t hca = 0; hca < hcas_; ++hca) {
            if (of_[hca].size() != 1 || seen.insert(of_[hca][0]).second) {
                some.push_back(hca);
            }
        }
        return some;
    }

  private:
    std::vector<std::vector<std::size_t>> of_;
    std::size_t hcas_ = 0;
    std::size_t between_switches_ = 0;
};

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

void print_routes(const Topology& topology) {
    namespace routing = fabric::routing;
    const routing::NamedGraph named = routing::graph_of(topology);
    const routing::Graph& graph = named.graph;
    if (graph.switch_count() == 0) {
        fmt::print("no switch on InfiniBand to route\n");
        return;
    }
    fmt::print("min-hop: {}\n",
               describe(routing::check(graph, routing::min_hop(graph)), named.switches));
    const std::vector<routing::SwitchIndex> roots = routing::find_roots(graph);
    fmt::print("up-down: {}\n",
               describe(routing::check(graph, routing::up_down(graph, roots)), named.switches));
    const fabric::Outcome<routing::Tables> tree = routing::fat_tree(graph, named.switches);
    fmt::print("fat-tree: {}\n", tree ? describe(routing::check(graph, *tree), named.switches)
                                      : fmt::format("no tree ({})", tree.error()));
}

// How many links away the nearest host adapter is: 0 of itself.
std::map<std::string, std::uint32_t> heights_of(const Topology& topology) {
    std::map<std::string, std::uint32_t> heights;
    for (const NodeSpec& node : topology.nodes) {
        if (node.kind == NodeKind::kHca) {
            heights.emplace(node.name, 0);
        }
    }
    for (std::uint32_t height = 1, known = 0; known != heights.size(); ++height) {
        known = static_cast<std::uint32_t>(heights.size());
        std::set<std::string> next;
        for (const LinkSpec& link : topology.links) {
            for (const auto& [below, above] :
                 {std::pair(&link.a.node, &link.b.node), std::pair(&link.b.node, &link.a.node)}) {
                const auto found = heights.find(*below);
                if (found != heights.end() && found->second + 1 == height &&
                    !heights.contains(*above)) {
                    next.insert(*above);
                }
            }
        }
        for (const std::string& name : next) {
            heights.emplace(name, height);
        }
    }
    return heights;
}

// Links lead down to the host adapters, since dot(1) places the ends of a link by its direction.
void print_dot(const Topology& topology) {
    const std::map<std::string, std::uint32_t> heights = heights_of(topology);
    const auto height_of = [&heights](const std::string& name) {
        const auto found = heights.find(name);
        return found == heights.end() ? UINT32_MAX : found->second;
    };
    fmt::print("graph fabric {{\n  node [fontname=\"sans-serif\"];\n");
    for (const NodeSpec& node : topology.nodes) {
        const bool is_hca = node.kind == NodeKind::kHca;
        fmt::print("  \"{}\" [shape={}];\n", node.name, is_hca ? "ellipse" : "box");
    }
    for (const LinkSpec& link : topology.links) {
        const bool is_upward = height_of(link.a.node) < height_of(link.b.node);
        const auto& upper = is_upward ? link.b : link.a;
        const auto& lower = is_upward ? link.a : link.b;
        fmt::print("  \"{}\" -- \"{}\" [taillabel=\"{}\", headlabel=\"{}\", label=\"{}\"];\n",
                   upper.node, lower.node, upper.port.value(), lower.port.value(),
                   fabric::yaml::spoken_rate({link.width, link.speed},
                                             link.layer == fabric::LinkLayer::kEthernet));
    }
    fmt::print("}}\n");
}

std::string mtu_text(const LinkSpec& link) {
    if (link.layer == fabric::LinkLayer::kInfiniband) {
        return fmt::format("{}B", to_bytes(link.mtu));
    }
    return link.ethernet_mtu ? fmt::format("{}B", *link.ethernet_mtu) : std::string("device's");
}

// Sizes, the diameter, and what is cut off; with `routes` what each routing engine makes of it.
void describe_topology(const std::string& spec, const Topology& topology, bool routes) {
    const Neighbours neighbours(topology);
    fmt::print("{}: {}, {}, {} ({} between switches)\n", spec,
               counted(neighbours.hcas(), "host adapter", "host adapters"),
               counted(topology.nodes.size() - neighbours.hcas(), "switch", "switches"),
               counted(topology.links.size(), "link", "links"), neighbours.between_switches());
    std::uint32_t diameter = 0;
    std::size_t cut_off = 0;
    for (const std::size_t hca : neighbours.different_hcas()) {
        const auto links = neighbours.links_from(hca);
        std::size_t reached = 0;
        for (std::size_t other = 0; other < neighbours.hcas(); ++other) {
            diameter = std::max(diameter, links[other].value_or(0));
            reached += links[other].has_value() ? 1 : 0;
        }
        cut_off = std::max(cut_off, neighbours.hcas() - reached);
    }
    fmt::print("diameter: {} from host to host\n", counted(diameter, "link", "links"));
    if (cut_off != 0) {
        fmt::print("not connected: {} cannot be reached from another one\n",
                   counted(cut_off, "host adapter", "host adapters"));
    }
    if (routes) {
        print_routes(topology);
    }
}

// Nodes and links as tables.
void show_topology(const Topology& topology) {
    std::vector<TableRow> nodes{{"node", "kind", "host", "ports", "GUID", "description"}};
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const NodeSpec& node = topology.nodes[i];
        const fabric::NodeId id{static_cast<std::uint32_t>(i)};
        nodes.push_back({node.name, std::string(to_string(node.kind)),
                         node.kind == NodeKind::kHca ? host_of(node) : std::string("-"),
                         std::to_string(node.port_count),
                         fmt::format("{:#018x}", node_guid(node, id).value()),
                         description_of(node)});
    }
    fmt::print("{}\n", text_table(nodes));
    std::vector<TableRow> links{
        {"link", "", "layer", "rate", "latency", "MTU", "VLs", "buffer", "PFC", "VLANs"}};
    for (const LinkSpec& link : topology.links) {
        const bool is_ethernet = link.layer == fabric::LinkLayer::kEthernet;
        const std::string none = "-";
        links.push_back({fmt::format("{}:{}", link.a.node, link.a.port.value()),
                         fmt::format("{}:{}", link.b.node, link.b.port.value()),
                         std::string(to_string(link.layer)),
                         fabric::yaml::spoken_rate({link.width, link.speed}, is_ethernet),
                         fabric::yaml::duration_text(link.latency), mtu_text(link),
                         is_ethernet ? none : std::to_string(link.vls),
                         is_ethernet ? none : fabric::yaml::bytes_text(link.buffer_bytes),
                         is_ethernet ? pfc_text(link) : none,
                         is_ethernet ? vlans_text(link) : none});
    }
    fmt::print("{}", text_table(links));
}

int convert_topology(const std::string& spec, const Topology& topology, const std::string& format) {
    if (format == "yaml") {
        fmt::print("{}", fabric::write_yaml(topology));
        return kPassed;
    }
    const auto written = fabric::write_ibnetdiscover(topology);
    if (!written) {
        return complain(fmt::format("{}: {}", spec, written.error()), kUsage);
    }
    fmt::print("{}", *written);
    return kPassed;
}

}  // namespace

TopologyCommands::TopologyCommands(CLI::App& app)
    : command_(app.add_subcommand("topology", "Look at a topology without serving it")),
      check_(add("check", "Mistakes (exit status 1), and its sizes")),
      show_(add("show", "Its nodes and links")),
      convert_(add("convert", "Write it in another format")) {
    command_->require_subcommand(1);
    check_->add_flag("--routes", routes_, "what each routing engine makes of it, too");
    show_->add_flag("--dot", dot_, "for Graphviz");
    convert_->add_option("--to", format_, "the format")
        ->check(CLI::IsMember({"yaml", "ibnetdiscover"}));
}

CLI::App* TopologyCommands::add(const char* name, const char* help) {
    CLI::App* const added = command_->add_subcommand(name, help);
    CLI::Option* const topology =
        added->add_option("topology", topology_, "a file, or " + std::string(fabric::generators()));
    topology->type_name("TOPOLOGY")->required();
    take_installed_files(*topology);
    return added;
}

int TopologyCommands::run() {
    const auto topology = load(topology_);
    if (!topology) {
        // The file was tested only if it could be read.
        const bool is_tested =
            !fabric::names_a_file(topology_) || access(topology_.c_str(), R_OK) == 0;
        return check_->parsed() && is_tested ? kFailed : kUsage;
    }
    if (convert_->parsed()) {
        return convert_topology(topology_, *topology, format_);
    }
    if (check_->parsed()) {
        describe_topology(topology_, *topology, routes_);
    } else if (dot_) {
        print_dot(*topology);
    } else {
        show_topology(*topology);
    }
    return kPassed;
}

}  // namespace simverbs::cli
