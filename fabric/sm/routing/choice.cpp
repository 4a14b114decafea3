#include "fabric/sm/routing/choice.hpp"

#include <array>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/outcome.hpp"
#include "fabric/sm/routing/engines.hpp"

namespace fabric::routing {

namespace {

Routes checked(RoutingEngine engine, const Graph& graph, Tables tables) {
    Report report = check(graph, tables);
    return {engine, std::move(tables), std::move(report), {}};
}

// Fails where the graph is no tree.
Outcome<Routes> route(RoutingEngine engine, const Graph& graph,
                      std::span<const std::string> switches) {
    if (engine == RoutingEngine::kMinHop) {
        return checked(engine, graph, min_hop(graph));
    }
    if (engine == RoutingEngine::kUpDown) {
        return checked(engine, graph, up_down(graph, find_roots(graph)));
    }
    Outcome<Tables> tree = fat_tree(graph, switches);
    if (!tree) {
        return Failure(std::move(tree.error()));
    }
    return checked(engine, graph, std::move(*tree));
}

Routes choose(const Graph& graph, std::span<const std::string> switches) {
    constexpr auto kInOrder =
        std::to_array({RoutingEngine::kFatTree, RoutingEngine::kMinHop, RoutingEngine::kUpDown});
    std::optional<Routes> best;
    std::string refused;
    const auto refuse = [&refused](RoutingEngine engine, std::string_view why) {
        refused += fmt::format("{}{}: {}", refused.empty() ? "" : "; ", to_string(engine), why);
    };
    for (const RoutingEngine engine : kInOrder) {
        Outcome<Routes> made = route(engine, graph, switches);
        if (!made) {
            refuse(engine, made.error());
        } else if (!made->report.credit_loop.empty()) {
            refuse(engine, "a credit loop");
        } else if (best && made->report.unreachable >= best->report.unreachable) {
            refuse(engine, fmt::format("leaves out {} pairs", made->report.unreachable));
        } else {
            if (best) {
                refuse(best->engine, fmt::format("leaves out {} pairs", best->report.unreachable));
            }
            best = std::move(*made);
            if (best->report.unreachable == 0) {
                break;
            }
        }
    }
    best->refused = std::move(refused);  // up-down has no credit loop
    return std::move(*best);
}

}  // namespace

Routes make_routes(const Graph& graph, std::span<const std::string> switches,
                   RoutingEngine wanted) {
    if (graph.destination_count() == 0) {
        return checked(RoutingEngine::kMinHop, graph, min_hop(graph));
    }
    if (wanted == RoutingEngine::kAutomatic) {
        return choose(graph, switches);
    }
    Outcome<Routes> made = route(wanted, graph, switches);
    return made ? std::move(*made) : choose(graph, switches);
}

}  // namespace fabric::routing
