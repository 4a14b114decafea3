#include "simverbs/cli/topology_commands.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "fabric/core/counted.hpp"
#include "fabric/net/topology.hpp"
#include "fabric/sm/routing/checks.hpp"
#include "fabric/sm/routing/topology_graph.hpp"
#include "fabric/topology/generators.hpp"
#include "fabric/topology/ibnetdiscover_text.hpp"
#include "fabric/topology/load.hpp"
#include "fabric/topology/yaml_text.hpp"
#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/cli/topology_json.hpp"
#include "simverbs/cli/topology_summary.hpp"
#include "simverbs/model/personalities.hpp"
#include "simverbs/server/text_table.hpp"

namespace simverbs::cli {
namespace {

using fabric::counted;
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

void print_routes(const Topology& topology) {
    const fabric::routing::NamedGraph named = fabric::routing::graph_of(topology);
    const std::vector<RoutesOfEngine> routes = check_routes(named);
    if (routes.empty()) {
        fmt::print("no switch on InfiniBand to route\n");
    }
    for (const RoutesOfEngine& each : routes) {
        fmt::print("{}: {}\n", each.engine,
                   each.report ? describe(*each.report, named.switches)
                               : fmt::format("no tree ({})", each.report.error()));
    }
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
    const TopologySummary summary = summarize(topology);
    fmt::print("{}: {}, {}, {} ({} between switches)\n", spec,
               counted(summary.host_adapters, "host adapter", "host adapters"),
               counted(summary.switches, "switch", "switches"),
               counted(summary.links, "link", "links"), summary.links_between_switches);
    fmt::print("diameter: {} from host to host\n", counted(summary.diameter, "link", "links"));
    if (summary.unreachable_most != 0) {
        fmt::print("not connected: {} cannot be reached from another one\n",
                   counted(summary.unreachable_most, "host adapter", "host adapters"));
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
    check_->add_flag("--json", as_json_, "for programs");
    show_->add_flag("--dot", dot_, "for Graphviz");
    show_->add_flag("--json", as_json_, "for programs")->excludes("--dot");
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
            !fabric::names_a_file(topology_) ||
            (access(topology_.c_str(), R_OK) == 0 && !std::filesystem::is_directory(topology_));
        return check_->parsed() && is_tested ? kFailed : kUsage;
    }
    if (convert_->parsed()) {
        return convert_topology(topology_, *topology, format_);
    }
    if (as_json_) {
        fmt::print("{}", check_->parsed() ? check_as_json(topology_, *topology, routes_)
                                          : topology_as_json(*topology));
    } else if (check_->parsed()) {
        describe_topology(topology_, *topology, routes_);
    } else if (dot_) {
        print_dot(*topology);
    } else {
        show_topology(*topology);
    }
    return kPassed;
}

}  // namespace simverbs::cli
