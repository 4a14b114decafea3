// Topologies for programs: the answers of `simverbs topology check --json` and `show --json`.
#pragma once

#include <string>
#include <string_view>

#include "fabric/net/topology.hpp"

namespace simverbs::cli {

// Sizes and diameter; with `has_routes` what each routing engine makes of it. A line with its end.
std::string check_as_json(std::string_view spec, const fabric::Topology& topology, bool has_routes);

// Nodes and links, with times in ps and sizes in bytes. A line with its end.
std::string topology_as_json(const fabric::Topology& topology);

}  // namespace simverbs::cli
