// A scenario file, read and checked: every name in it means something.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/outcome.hpp"
#include "fabric/net/topology.hpp"
#include "fabric/yaml/value.hpp"

#include "scenarios/engine/checked.hpp"

namespace scenarios {

// The fabric of a scenario without `fabric:`.
struct DefaultFabric {
    std::string topology = "star:2";  // as simverbs_set_topology() takes it
    // False: the program may choose another. Its names are not known then, and not checked.
    bool is_certain = true;
};

struct Scenario {
    std::string file;
    fabric::yaml::Value root;  // includes, settings and workloads are part of it
    fabric::Topology topology;
    std::string topology_spec;  // as simverbs_set_topology() takes it; empty: `topology`
    std::vector<std::string> included{};
    DefaultFabric default_fabric{};

    [[nodiscard]] Checked at(std::string_view key) const { return Checked(root).at(key); }
    // Returns the files of positions: itself, then those that it includes.
    [[nodiscard]] std::vector<std::string> files() const;
    [[nodiscard]] std::vector<std::string> hosts() const;
    [[nodiscard]] bool is_fabric_known() const;
    // Its programs are somebody else's: commands of hosts, or what has the library in it.
    [[nodiscard]] bool has_own_programs() const;
    [[nodiscard]] bool has_processes() const;
};

// "run.seed=7": a change of the file.
using Settings = std::span<const std::string>;

// A failure has every mistake, a line each.
fabric::Outcome<Scenario> load(const std::string& file, Settings settings,
                               const DefaultFabric& otherwise = {});
fabric::Outcome<Scenario> parse(std::string_view text, const std::string& file, Settings settings,
                                const DefaultFabric& otherwise = {});

// As a file without includes, settings and workloads.
std::string to_text(const Scenario& scenario);

}  // namespace scenarios
