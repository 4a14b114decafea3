#include "simverbs/cli/topology_summary.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fabric/sm/routing/engines.hpp"

namespace simverbs::cli {
namespace {

using fabric::LinkSpec;
using fabric::NodeKind;
using fabric::NodeSpec;
using fabric::Topology;

// The neighbours of each node, by rank; hosts come before switches.
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

    // The number of links from `start` to each node, by rank; nothing where no path leads there.
    // HCAs forward nothing.
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

    // Leaves out HCAs with one link, to a switch that another such HCA has: both are as far from
    // everything.
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

}  // namespace

TopologySummary summarize(const Topology& topology) {
    const Neighbours neighbours(topology);
    TopologySummary summary{
        .host_adapters = neighbours.hcas(),
        .switches = topology.nodes.size() - neighbours.hcas(),
        .links = topology.links.size(),
        .links_between_switches = neighbours.between_switches(),
    };
    for (const std::size_t hca : neighbours.different_hcas()) {
        const auto links = neighbours.links_from(hca);
        std::size_t reached = 0;
        for (std::size_t other = 0; other < neighbours.hcas(); ++other) {
            summary.diameter = std::max(summary.diameter, links[other].value_or(0));
            reached += links[other].has_value() ? 1 : 0;
        }
        summary.unreachable_most = std::max(summary.unreachable_most, neighbours.hcas() - reached);
    }
    return summary;
}

std::vector<RoutesOfEngine> check_routes(const fabric::routing::NamedGraph& named) {
    namespace routing = fabric::routing;
    const routing::Graph& graph = named.graph;
    if (graph.switch_count() == 0) {
        return {};
    }
    const auto report_of = [&graph](const fabric::Outcome<routing::Tables>& tables) {
        return tables ? fabric::Outcome<routing::Report>(routing::check(graph, *tables))
                      : fabric::Outcome<routing::Report>(fabric::Failure(tables.error()));
    };
    const std::vector<routing::SwitchIndex> roots = routing::find_roots(graph);
    return {{"min-hop", report_of(routing::min_hop(graph))},
            {"up-down", report_of(routing::up_down(graph, roots))},
            {"fat-tree", report_of(routing::fat_tree(graph, named.switches))}};
}

}  // namespace simverbs::cli
