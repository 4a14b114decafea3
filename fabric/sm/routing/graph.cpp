#include "fabric/sm/routing/graph.hpp"

#include <algorithm>

#include "fabric/core/assert.hpp"

namespace fabric::routing {

SwitchIndex Graph::add_switch(std::uint16_t ports) {
    first_.push_back(neighbours_.size());
    port_counts_.push_back(ports);
    neighbours_.resize(neighbours_.size() + ports + 1U);
    return static_cast<SwitchIndex>(first_.size() - 1);
}

void Graph::connect(SwitchIndex a, std::uint16_t port_a, SwitchIndex b, std::uint16_t port_b) {
    const auto neighbour = [this](SwitchIndex at, std::uint16_t port) -> Neighbour& {
        SIMVERBS_ASSERT(at < first_.size() && port >= 1 && port <= port_counts_[at],
                        "switch {} has no port {}", at, port);
        return neighbours_[first_[at] + port];
    };
    neighbour(a, port_a) = {b, port_b};
    neighbour(b, port_b) = {a, port_a};
}

void Graph::add_destination(const Destination& destination) {
    SIMVERBS_ASSERT(destination.at < first_.size() && is_unicast(destination.lid),
                    "LID {} at switch {}", destination.lid.value(), destination.at);
    destinations_.push_back(destination);
    lid_count_ = std::max<std::size_t>(lid_count_, destination.lid.value() + std::size_t{1});
}

std::vector<std::vector<Destination>> Graph::destinations_by_switch() const {
    std::vector<std::vector<Destination>> all(switch_count());
    for (const Destination& one : destinations_) {
        all[one.at].push_back(one);
    }
    return all;
}

std::vector<std::uint32_t> Graph::hosts_by_switch() const {
    std::vector<std::uint32_t> hosts(switch_count(), 0);
    std::vector<bool> seen(neighbours_.size(), false);
    for (const Destination& one : destinations_) {
        if (one.port != 0 && !seen[first_[one.at] + one.port]) {
            seen[first_[one.at] + one.port] = true;
            ++hosts[one.at];
        }
    }
    return hosts;
}

std::vector<std::uint32_t> hops_to(const Graph& graph, SwitchIndex target) {
    std::vector<std::uint32_t> hops(graph.switch_count(), kUnreachable);
    std::vector<SwitchIndex> queue{target};
    queue.reserve(graph.switch_count());
    hops[target] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (const Neighbour& next : graph.ports(queue[i])) {
            if (next.at != kNobody && hops[next.at] == kUnreachable) {
                hops[next.at] = hops[queue[i]] + 1;
                queue.push_back(next.at);
            }
        }
    }
    return hops;
}

}  // namespace fabric::routing
