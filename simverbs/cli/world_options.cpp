#include "simverbs/cli/world_options.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simverbs/model/personalities.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs::cli {
namespace {

// An option whose value is one of `values`.
template <class Value>
void add_choice(CLI::App& command, const char* name, const std::map<std::string, Value>& values,
                const char* by_default, Value& chosen, const char* meaning) {
    command
        .add_option_function<std::string>(
            name, [&chosen, values](const std::string& word) { chosen = values.at(word); }, meaning)
        ->check(CLI::IsMember(values))
        ->default_str(by_default);
}

std::vector<std::string> personality_names() {
    std::vector<std::string> names;
    names.reserve(kPersonalities.size());
    for (const Personality* const each : kPersonalities) {
        names.emplace_back(each->name);
    }
    return names;
}

}  // namespace

void add_world_options(CLI::App& command, ServerOptions& options) {
    SimulationOptions& world = options.simulation;
    command.add_option("--seed", world.seed, "seed of every random decision")->type_name("N");
    command.add_option("--first-psn", world.first_psn, "what PSN 0 of programs is on the wire")
        ->check(CLI::Range(world.kMaxFirstPsn));
    command
        .add_option("--first-qpn", world.first_qpn,
                    "low 16 bits of the first queue pair number of a context")
        ->check(CLI::Range(world.kMaxFirstQpn));
    add_choice<bool>(command, "--keys", {{"sequential", false}, {"random", true}}, "sequential",
                     world.random_keys, "keys of memory regions; random ones follow the seed");
    world.subnet_management = SubnetManagement::kSweep;
    const std::map<std::string, SubnetManagement> managements(kSubnetManagementNames.begin(),
                                                              kSubnetManagementNames.end());
    add_choice(
        command, "--sm", managements, "sweep", world.subnet_management,
        "what brings ports up: a subnet manager that sweeps by datagrams, start-up at once, or "
        "none");
    command
        .add_option_function<std::string>(
            "--routing",
            [&world](const std::string& name) { world.routing = fabric::routing_engine_of(name); },
            "routes of InfiniBand; auto: what suits the topology")
        ->check(CLI::IsMember({"auto", "min-hop", "up-down", "fat-tree"}))
        ->default_str("auto");
    command
        .add_option(
            "--personality", world.personality,
            fmt::format("device that HCAs resemble: {}", fmt::join(personality_names(), ", ")))
        ->type_name("NAME");
    add_choice<Schedule>(
        command, "--schedule", {{"canonical", Schedule::kCanonical}, {"free", Schedule::kFree}},
        "free", options.conductor.schedule, "who moves time; canonical repeats itself exactly");
    command.add_option("--trace", options.trace_file, "write every event to FILE (JSON Lines)")
        ->type_name("FILE");
    command
        .add_option("--pcap", options.capture_file, "write every packet to FILE (for Wireshark)")
        ->type_name("FILE");
    command
        .add_option("--coverage", options.coverage_folder,
                    "write what of the model is reached to a file of its own in DIR, for "
                    "simverbs viz coverage")
        ->type_name("DIR")
        ->envname("SIMVERBS_COVERAGE");
}

void add_world(CLI::App& command, std::string& world) {
    command.add_option("--world", world, "name of the world, or path of its socket")
        ->type_name("WORLD");
}

CLI::Option* add_limit(CLI::App& command, const char* name, std::chrono::milliseconds& limit,
                       const char* meaning, const char* by_default) {
    return command
        .add_option_function<std::uint64_t>(
            name, [&limit](const std::uint64_t& ms) { limit = std::chrono::milliseconds(ms); },
            fmt::format("{}; of wall time: 500ms, 60s, 10min, 1h", meaning))
        ->transform(CLI::AsNumberWithUnit(
            std::map<std::string, std::uint64_t>{
                {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}},
            CLI::AsNumberWithUnit::UNIT_REQUIRED))
        ->type_name("DURATION")
        ->default_str(by_default);
}

}  // namespace simverbs::cli
