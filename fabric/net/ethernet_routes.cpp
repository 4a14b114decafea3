#include "fabric/net/ethernet_routes.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "fabric/net/network.hpp"

namespace fabric {

namespace {

constexpr std::uint32_t kUnreachable = std::numeric_limits<std::uint32_t>::max();

bool is_ethernet(const Switch& one) {
    return one.port(PortNumber{0}).attributes().link_layer == LinkLayer::kEthernet;
}

class RouteBuilder {
  public:
    explicit RouteBuilder(Network& network) : network_(network) {
        for (std::size_t i = 0; i < network.switch_count(); ++i) {
            if (is_ethernet(network.switch_at(i))) {
                index_of_.emplace(network.switch_at(i).id(), static_cast<std::uint32_t>(i));
            }
        }
        routes_.resize(network.switch_count());
    }

    void build() {
        const auto stations = std::make_shared<const Stations>(find_stations());
        std::vector<bool> has_stations(network_.switch_count());
        for (const Station& station : *stations) {
            has_stations[station.switch_index] = true;
        }
        for (const auto& [id, index] : index_of_) {
            routes_[index].stations = stations;
            routes_[index].own_index = index;
            routes_[index].ports_to.resize(network_.switch_count());
        }
        for (const auto& [id, index] : index_of_) {
            if (has_stations[index]) {
                add_ways_to(index);
            }
        }
        build_trees();
        for (const auto& [id, index] : index_of_) {
            std::sort(routes_[index].tree_ports.begin(), routes_[index].tree_ports.end());
            network_.switch_at(index).set_ethernet_routes(std::move(routes_[index]));
        }
    }

  private:
    template <class F>
    void for_each_neighbour(std::uint32_t index, F&& visit) const {
        const Switch& one = network_.switch_at(index);
        for (std::uint16_t number = 1; number <= one.port_count(); ++number) {
            const Port& port = one.port(PortNumber{number});
            if (port.link() == nullptr || port.link()->state() != LinkState::kUp) {
                continue;
            }
            const auto neighbour = index_of_.find(port.peer()->node().id());
            if (neighbour != index_of_.end()) {
                visit(neighbour->second, port);
            }
        }
    }

    Stations find_stations() {
        Stations stations;
        for (const auto& [id, index] : index_of_) {
            const Switch& one = network_.switch_at(index);
            for (std::uint16_t number = 1; number <= one.port_count(); ++number) {
                const Port& port = one.port(PortNumber{number});
                if (port.peer() != nullptr && port.peer()->node().kind() == NodeKind::kHca) {
                    stations.push_back({port.peer()->attributes().mac, index, number});
                    routes_[index].tree_ports.push_back(number);
                }
            }
        }
        std::sort(stations.begin(), stations.end(),
                  [](const Station& a, const Station& b) { return a.mac < b.mac; });
        return stations;
    }

    void add_ways_to(std::uint32_t target) {
        std::vector<std::uint32_t> hops(network_.switch_count(), kUnreachable);
        std::deque<std::uint32_t> frontier{target};
        hops[target] = 0;
        while (!frontier.empty()) {
            const std::uint32_t index = frontier.front();
            frontier.pop_front();
            for_each_neighbour(index, [&](std::uint32_t next, const Port& port) {
                if (hops[next] == kUnreachable) {
                    hops[next] = hops[index] + 1;
                    frontier.push_back(next);
                }
                if (hops[next] + 1 == hops[index]) {
                    routes_[index].ports_to[target].push_back(port.number().value());
                }
            });
        }
    }

    // One tree for each part of the network that hangs together, from its first switch.
    void build_trees() {
        std::vector<bool> reached(network_.switch_count());
        for (const auto& [id, root] : index_of_) {
            if (reached[root]) {
                continue;
            }
            reached[root] = true;
            std::deque<std::uint32_t> frontier{root};
            while (!frontier.empty()) {
                const std::uint32_t index = frontier.front();
                frontier.pop_front();
                for_each_neighbour(index, [&](std::uint32_t next, const Port& port) {
                    if (!reached[next]) {
                        reached[next] = true;
                        frontier.push_back(next);
                        routes_[index].tree_ports.push_back(port.number().value());
                        routes_[next].tree_ports.push_back(port.peer()->number().value());
                    }
                });
            }
        }
    }

    Network& network_;
    std::map<NodeId, std::uint32_t> index_of_;
    std::vector<EthernetRoutes> routes_;
};

}  // namespace

void route_ethernet(Network& network) {
    RouteBuilder(network).build();
}

}  // namespace fabric
