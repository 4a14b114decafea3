// The options of commands that make a world, from the table of settings.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/model/settings.hpp"
#include "simverbs/server/server.hpp"

namespace simverbs::cli {

// "--first-psn" of SIMVERBS_FIRST_PSN.
std::string option_of(const SettingRow& row);

// Adds the option of a row of the table of settings to `command`; a switch is a flag. `take` gets a
// value that is valid.
CLI::Option* add_setting(CLI::App& command, const SettingRow& row,
                         const std::function<void(const std::string&)>& take);

// Adds the options of the table of settings to `command`; they write to `options`, which outlives
// it.
void add_world_options(CLI::App& command, ServerOptions& options);

// A scenario in the place of a topology.
struct ScenarioChoice {
    std::string file{};                   // "": none
    std::vector<std::string> settings{};  // changes of it
};

// Adds --scenario, described by `meaning`, the options of add_world_options(), and --set; they
// write to `scenario` and `options`, which outlive `command`. Options of settings for which
// `is_of_scenario` holds are refused beside a scenario. Returns --scenario.
CLI::Option* add_scenario_or_world_options(CLI::App& command, ScenarioChoice& scenario,
                                           const char* meaning, ServerOptions& options,
                                           bool (*is_of_scenario)(const SettingRow& row));

// Adds --world: which served world `command` is about. Names that cannot be shown in a list, or
// look like an option, are refused.
CLI::Option* add_world(CLI::App& command, std::string& world);

// Adds an option of wall time, a number with a unit, which writes to `limit`. `meaning` tells what
// it limits; `by_default` what holds without it.
CLI::Option* add_limit(CLI::App& command, const char* name, std::chrono::milliseconds& limit,
                       const char* meaning, const char* by_default);

}  // namespace simverbs::cli
