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

struct Scenario {
    std::string file;
    fabric::yaml::Value root;  // includes, settings and workloads are part of it
    fabric::Topology topology;
    std::string topology_spec;  // as simverbs_set_topology() takes it; empty: `topology`
    std::vector<std::string> included{};

    [[nodiscard]] Checked at(std::string_view key) const { return Checked(root).at(key); }
    // Returns the files of positions: itself, then those that it includes.
    [[nodiscard]] std::vector<std::string> files() const;
    [[nodiscard]] std::vector<std::string> hosts() const;
    // Its programs are somebody else's: commands of hosts, or what has the library in it.
    [[nodiscard]] bool has_own_programs() const;
    [[nodiscard]] bool has_processes() const;
};

// "run.seed=7": a change of the file.
using Settings = std::span<const std::string>;

// A failure has every mistake, a line each.
fabric::Outcome<Scenario> load(const std::string& file, Settings settings);
fabric::Outcome<Scenario> parse(std::string_view text, const std::string& file, Settings settings);

// As a file without includes, settings and workloads.
std::string to_text(const Scenario& scenario);

}  // namespace scenarios
