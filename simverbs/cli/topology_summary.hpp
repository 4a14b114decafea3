// The sizes of a topology, its diameter, and the quality of the routes of each engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/outcome.hpp"
#include "fabric/net/topology.hpp"
#include "fabric/sm/routing/checks.hpp"
#include "fabric/sm/routing/topology_graph.hpp"

namespace simverbs::cli {

struct TopologySummary {
    std::size_t host_adapters = 0;
    std::size_t switches = 0;
    std::size_t links = 0;
    std::size_t links_between_switches = 0;
    std::uint32_t diameter = 0;  // links between the two host adapters that are farthest apart
    std::size_t unreachable_most = 0;  // host adapters that one of them cannot reach, at most
};

// `topology` has its host adapters before its switches.
TopologySummary summarize(const fabric::Topology& topology);

// The routes that an engine computes; a failure where the topology has no form that it knows.
struct RoutesOfEngine {
    std::string_view engine;
    fabric::Outcome<fabric::routing::Report> report;
};

// Empty without a switch on InfiniBand.
std::vector<RoutesOfEngine> check_routes(const fabric::routing::NamedGraph& named);

}  // namespace simverbs::cli
