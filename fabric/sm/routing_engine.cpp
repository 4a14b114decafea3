#include "fabric/sm/routing_engine.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "fabric/mad/attributes.hpp"

namespace fabric {

namespace {

constexpr std::uint32_t kFar = std::numeric_limits<std::uint32_t>::max();

std::vector<std::uint32_t> hops_to(const RoutingGraph& graph, std::uint32_t target) {
    std::vector<std::uint32_t> hops(graph.switches.size(), kFar);
    std::deque<std::uint32_t> frontier{target};
    hops[target] = 0;
    while (!frontier.empty()) {
        const std::uint32_t at = frontier.front();
        frontier.pop_front();
        for (const RoutingGraph::Neighbour& next : graph.switches[at]) {
            if (next.switch_index != RoutingGraph::kNoSwitch && hops[next.switch_index] == kFar) {
                hops[next.switch_index] = hops[at] + 1;
                frontier.push_back(next.switch_index);
            }
        }
    }
    return hops;
}

// Of each switch the ports that lead nearer to `target`.
std::vector<std::vector<std::uint8_t>> ways_to(const RoutingGraph& graph, std::uint32_t target) {
    const std::vector<std::uint32_t> hops = hops_to(graph, target);
    std::vector<std::vector<std::uint8_t>> ways(graph.switches.size());
    for (std::size_t from = 0; from < ways.size(); ++from) {
        const auto& ports = graph.switches[from];
        for (std::size_t number = 1; hops[from] != kFar && number < ports.size(); ++number) {
            if (ports[number].switch_index != RoutingGraph::kNoSwitch &&
                hops[ports[number].switch_index] + 1 == hops[from]) {
                ways[from].push_back(static_cast<std::uint8_t>(number));
            }
        }
    }
    return ways;
}

}  // namespace

LinearTables min_hop_routes(const RoutingGraph& graph) {
    const std::size_t entries = graph.targets.empty() ? 0 : graph.targets.back().lid.value() + 1U;
    LinearTables tables(graph.switches.size(),
                        std::vector<std::uint8_t>(entries, mad::tables::kNoRoute));
    std::vector<RoutingGraph::Target> targets = graph.targets;
    std::ranges::stable_sort(targets, {}, &RoutingGraph::Target::switch_index);
    std::uint32_t looked_at = RoutingGraph::kNoSwitch;
    std::vector<std::vector<std::uint8_t>> ways;
    for (const RoutingGraph::Target& target : targets) {
        if (target.switch_index != looked_at) {
            looked_at = target.switch_index;
            ways = ways_to(graph, looked_at);
        }
        for (std::size_t from = 0; from < tables.size(); ++from) {
            if (from == looked_at) {
                tables[from][target.lid.value()] = target.port;
            } else if (!ways[from].empty()) {
                tables[from][target.lid.value()] =
                    ways[from][target.lid.value() % ways[from].size()];
            }
        }
    }
    return tables;
}

}  // namespace fabric
