#include "simverbs/server/fabric_subnet.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "fabric/core/counted.hpp"
#include "fabric/sm/network_graph.hpp"
#include "fabric/sm/routing/checks.hpp"

#include "simverbs/server/report_json.hpp"

namespace simverbs {
namespace {

using fabric::Network;
using fabric::Port;
namespace routing = fabric::routing;

bool has_infiniband(const Network& network) {
    for (std::size_t i = 0; i < network.link_count(); ++i) {
        if (network.link(i).end(0).attributes().link_layer == fabric::LinkLayer::kInfiniband) {
            return true;
        }
    }
    return false;
}

using PortCounts = std::array<std::size_t, fabric::kPortStates.size()>;

// InfiniBand ports with a link, by state.
PortCounts count_ports(const Network& network) {
    PortCounts count{};
    for (std::size_t i = 0; i < network.link_count(); ++i) {
        for (const std::size_t end : {0U, 1U}) {
            const Port& port = network.link(i).end(end);
            if (port.attributes().link_layer == fabric::LinkLayer::kInfiniband) {
                ++count[static_cast<std::size_t>(port.state()) - 1];
            }
        }
    }
    return count;
}

std::string describe_ports(const Network& network) {
    const PortCounts count = count_ports(network);
    std::string text = "InfiniBand ports:";
    for (const fabric::PortState state : fabric::kPortStates) {
        const std::size_t some = count[static_cast<std::size_t>(state) - 1];
        if (some != 0) {
            text += fmt::format(" {} {}", some, to_string(state));
        }
    }
    return text;
}

std::string describe_manager(Simulation& simulation) {
    const fabric::SweepingSm* const sweeping = simulation.sweeping_sm();
    if (sweeping != nullptr) {
        std::string text =
            fmt::format("{}, {}, after {}, of {}, by {}", to_string(sweeping->state()),
                        sweeping->is_settled() ? "settled" : "at work",
                        fabric::counted(sweeping->sweeps(), "sweep"),
                        fabric::counted(sweeping->subnet().nodes.size(), "node"),
                        to_string(sweeping->engine()));
        return sweeping->refused().empty() ? text
                                           : fmt::format("{} ({})", text, sweeping->refused());
    }
    return simulation.subnet_manager() != nullptr ? "start-up: at once, without datagrams"
                                                  : "none of this world's own";
}

// As the switches have them.
routing::Tables tables_of(const Network& network, std::size_t lids) {
    routing::Tables tables(network.switch_count(), lids);
    for (std::size_t i = 0; i < network.switch_count(); ++i) {
        const fabric::Switch& one = network.switch_at(i);
        for (std::size_t value = 1; value < lids; ++value) {
            const fabric::Lid lid(static_cast<std::uint16_t>(value));
            if (one.route(lid) <= one.port_count()) {
                tables.set(static_cast<routing::SwitchIndex>(i), lid, one.route(lid));
            }
        }
    }
    return tables;
}

// Nothing: no switch has routes.
std::optional<routing::Report> check_routes(const Network& network) {
    const routing::Graph graph = graph_of(network);
    if (graph.destination_count() == 0) {
        return std::nullopt;
    }
    return check(graph, tables_of(network, graph.lid_count()));
}

std::vector<std::string> switch_names(const Network& network) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < network.switch_count(); ++i) {
        names.push_back(network.switch_at(i).name());
    }
    return names;
}

bool has_infiniband_switch(const Network& network) {
    for (std::size_t i = 0; i < network.switch_count(); ++i) {
        if (network.switch_at(i).port(fabric::PortNumber{0}).attributes().link_layer ==
            fabric::LinkLayer::kInfiniband) {
            return true;
        }
    }
    return false;
}

std::string describe_routes(const Network& network) {
    const std::optional<routing::Report> report = check_routes(network);
    if (report) {
        return "routes: " + describe(*report, switch_names(network));
    }
    return has_infiniband_switch(network) ? "routes: none, no port of the switches has a LID"
                                          : "no InfiniBand switch to route";
}

Json json_of_manager(Simulation& simulation) {
    const fabric::SweepingSm* const sweeping = simulation.sweeping_sm();
    if (sweeping == nullptr) {
        return {{"kind", simulation.subnet_manager() != nullptr ? "startup" : "none"}};
    }
    return {{"kind", "sweep"},
            {"state", to_string(sweeping->state())},
            {"settled", sweeping->is_settled()},
            {"sweeps", sweeping->sweeps()},
            {"nodes", sweeping->subnet().nodes.size()},
            {"routing", to_string(sweeping->engine())},
            {"refused", sweeping->refused()}};
}

Json json_of_ports(const Network& network) {
    const PortCounts count = count_ports(network);
    Json json = Json::object();
    for (const fabric::PortState state : fabric::kPortStates) {
        json[std::string(to_string(state))] = count[static_cast<std::size_t>(state) - 1];
    }
    return json;
}

// null: no switch has routes.
Json json_of_routes(const Network& network) {
    const std::optional<routing::Report> report = check_routes(network);
    if (!report) {
        return nullptr;
    }
    return {{"pairs", report->pairs},
            {"unreachable", report->unreachable},
            {"longer_than_needed", report->longer_than_needed},
            {"longest", report->longest},
            {"most_routes_of_a_link", report->most_routes},
            {"mean_routes_of_a_link", report->mean_routes()},
            {"credit_loop", describe(report->credit_loop, switch_names(network))}};
}

}  // namespace

std::string describe_missing_sweeps(Simulation& simulation) {
    return has_infiniband(simulation.network())
               ? "this world has no subnet manager that sweeps: start it with --sm sweep"
               : "this world has no subnet manager: all of its ports are on Ethernet";
}

std::string describe_subnet(Simulation& simulation, bool as_json) {
    const Network& network = simulation.network();
    if (as_json) {
        return text_of({{"topology", simulation.topology()},
                        {"time_ps", to_picoseconds(simulation.loop().now())},
                        {"manager", json_of_manager(simulation)},
                        {"infiniband_ports", json_of_ports(network)},
                        {"routes", json_of_routes(network)}});
    }
    return fmt::format("subnet manager: {}\n{}\n{}\n", describe_manager(simulation),
                       describe_ports(network), describe_routes(network));
}

}  // namespace simverbs
