// The `simverbs` command: its words and options; what they do is in world_commands.cpp.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fabric/topology/generators.hpp"

#include "simverbs/cli/fabric_commands.hpp"
#include "simverbs/cli/lab_commands.hpp"
#include "simverbs/cli/scenario_commands.hpp"
#include "simverbs/cli/search_commands.hpp"
#include "simverbs/cli/topology_commands.hpp"
#include "simverbs/cli/viz_commands.hpp"
#include "simverbs/cli/watch_command.hpp"
#include "simverbs/cli/world_commands.hpp"
#include "simverbs/world/served_protocol.hpp"

namespace {

using simverbs::Schedule;
using simverbs::ServerOptions;
namespace cli = simverbs::cli;

const std::map<std::string, Schedule> kSchedules = {{"canonical", Schedule::kCanonical},
                                                    {"free", Schedule::kFree}};

void add_world_options(CLI::App& command, ServerOptions& options) {
    command.add_option("--seed", options.simulation.seed, "of every random decision");
    command
        .add_option("--first-psn", options.simulation.first_psn,
                    "where PSN 0 of programs is on the wire")
        ->check(CLI::Range(options.simulation.kMaxFirstPsn));
    command
        .add_option("--first-qpn", options.simulation.first_qpn,
                    "low 16 bits of the first queue pair number of a context")
        ->check(CLI::Range(options.simulation.kMaxFirstQpn));
    command
        .add_option_function<std::string>(
            "--keys",
            [&options](const std::string& order) {
                options.simulation.random_keys = order == "random";
            },
            "of memory: sequential (default) or random, by the seed")
        ->check(CLI::IsMember({"sequential", "random"}));
    // Unlike an embedded one: the tools of operators ask it.
    options.simulation.subnet_management = simverbs::SubnetManagement::kSweep;
    command
        .add_option_function<std::string>(
            "--sm",
            [&options](const std::string& name) {
                for (const auto& [known, management] : simverbs::kSubnetManagementNames) {
                    if (known == name) {
                        options.simulation.subnet_management = management;
                    }
                }
            },
            "who brings ports up: sweep (default; by datagrams), startup (at once) or none")
        ->check(CLI::IsMember({"startup", "sweep", "none"}));
    command
        .add_option_function<std::string>(
            "--routing",
            [&options](const std::string& name) {
                options.simulation.routing = fabric::routing_engine_of(name);
            },
            "of InfiniBand: auto (default: of the topology), min-hop, up-down, fat-tree")
        ->check(CLI::IsMember({"auto", "min-hop", "up-down", "fat-tree"}));
    command.add_option("--personality", options.simulation.personality, "spec, connectx6 or rxe");
    command.add_option("--trace", options.trace_file, "write every event to FILE (JSON Lines)");
    command.add_option("--pcap", options.capture_file,
                       "write every packet to FILE (for Wireshark)");
    command
        .add_option("--coverage", options.coverage_folder,
                    "write what of the model is reached to a file of its own in DIR, for "
                    "simverbs viz coverage")
        ->envname("SIMVERBS_COVERAGE");
    command
        .add_option_function<std::string>(
            "--schedule",
            [&options](const std::string& name) {
                options.conductor.schedule = kSchedules.at(name);
            },
            "who moves time: free (default) or canonical (deterministic)")
        ->check(CLI::IsMember(kSchedules));
}

// Of CLI11 2.1, which reads "-1" as the largest number that there is.
void refuse_negative_numbers(CLI::App& app) {
    const CLI::Validator is_not_negative(
        [](const std::string& text) {
            return text.starts_with('-') ? text + " is below 0" : std::string();
        },
        "");
    for (CLI::Option* const option : app.get_options()) {
        if (option->get_type_name().find("UINT") != std::string::npos) {
            option->transform(is_not_negative);  // before units and ranges are looked at
        }
    }
    for (CLI::App* const each :
         app.get_subcommands([](const CLI::App* /*each*/) { return true; })) {
        refuse_negative_numbers(*each);
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Simulated RDMA: verbs programs on hosts of a simulated fabric.", "simverbs");
    app.set_version_flag("--version", SIMVERBS_VERSION);
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default();

    std::string world = "default";
    cli::UpOptions up;
    CLI::App* up_command = app.add_subcommand("up", "Serve a world in the background");
    up_command
        ->add_option("topology", up.server.simulation.topology, std::string(fabric::generators()))
        ->required();
    add_world_options(*up_command, up.server);
    up_command->add_flag("--foreground", up.foreground, "stay, and print a summary at the end");

    cli::RunOptions run;
    std::uint64_t limit_ms = 0;
    CLI::App* run_command =
        app.add_subcommand("run", "Serve a world, run programs on its hosts, end it");
    add_world_options(*run_command, run.server);
    run_command->add_option("words", run.words,
                            "TOPOLOGY, then HOST='COMMAND' ..., started in this order; "
                            "topologies are " +
                                std::string(fabric::generators()));
    CLI::Option* scenario_file =
        run_command->add_option("--scenario", run.scenario,
                                "instead of TOPOLOGY: FILE says what fabric there is, what goes "
                                "wrong and what to expect");
    for (const char* of_file : {"--seed", "--first-psn", "--first-qpn", "--keys", "--sm",
                                "--routing", "--personality", "--schedule"}) {
        scenario_file->excludes(run_command->get_option(of_file));
    }
    run_command->add_option("--set", run.settings, "KEY.KEY=VALUE: a change of the scenario")
        ->allow_extra_args(false)
        ->needs(scenario_file);
    run_command->add_option("--time-limit", limit_ms, "of wall time, with a unit: 30s, 500ms")
        ->transform(CLI::AsNumberWithUnit(
            std::map<std::string, std::uint64_t>{{"ms", 1}, {"s", 1000}, {"min", 60'000}},
            CLI::AsNumberWithUnit::UNIT_REQUIRED));
    run_command->add_flag("--quiet", run.quiet, "no summary");

    std::string host;
    std::vector<std::string> command;
    CLI::App* on_command = app.add_subcommand("on", "Run a program on a host of a served world");
    on_command->add_option("host", host, "of the topology")->required();
    on_command->add_option("command", command, "after --")->required();
    on_command->prefix_command();

    CLI::App* status_command = app.add_subcommand("status", "What a served world is doing");
    bool verbose = false;
    status_command->add_flag("-v,--verbose", verbose, "what each queue pair waits for");
    CLI::App* down_command = app.add_subcommand("down", "End a served world");
    bool force = false;
    down_command->add_flag("--force", force,
                           "although programs are attached: they lose their "
                           "devices");
    for (CLI::App* each : {up_command, on_command, status_command, down_command}) {
        each->add_option("--world", world, "name of the world, or path of its socket");
    }

    const cli::FabricCommands fabric(app, world);
    const cli::WatchCommand watch(app, world);
    const cli::VizCommands viz(app);
    const cli::ScenarioCommands scenario(app);
    const cli::LabCommands lab(app);
    cli::SearchCommands search(app, cli::take_program(argc, argv));

    std::string topology;
    std::string format = "yaml";
    bool routes = false;
    bool dot = false;
    CLI::App* topology_command =
        app.add_subcommand("topology", "Look at a topology without serving it");
    topology_command->require_subcommand(1);
    CLI::App* check_command = topology_command->add_subcommand("check", "Mistakes, and its sizes");
    check_command->add_flag("--routes", routes, "what each routing engine makes of it");
    CLI::App* show_command = topology_command->add_subcommand("show", "Its nodes and links");
    show_command->add_flag("--dot", dot, "for Graphviz");
    CLI::App* convert_command =
        topology_command->add_subcommand("convert", "Write it in another format");
    convert_command->add_option("--to", format, "yaml (default) or ibnetdiscover")
        ->check(CLI::IsMember({"yaml", "ibnetdiscover"}));
    for (CLI::App* each : {check_command, show_command, convert_command}) {
        each->add_option("topology", topology, "a file or " + std::string(fabric::generators()))
            ->required();
    }
    refuse_negative_numbers(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : cli::kUsage;  // help is no error
    }

    const std::string socket = simverbs::socket_path(world);
    if (*up_command) {
        up.server.socket = socket;
        return cli::up(up);
    }
    if (*run_command) {
        if (limit_ms != 0) {
            run.time_limit = std::chrono::milliseconds(limit_ms);
        }
        return cli::run(run);
    }
    if (*on_command) {
        return cli::on(socket, host, command);
    }
    if (fabric.is_chosen()) {
        return fabric.run(socket);
    }
    if (watch.is_chosen()) {
        return watch.run(socket);
    }
    if (viz.is_chosen()) {
        return viz.run();
    }
    if (scenario.is_chosen()) {
        return scenario.run();
    }
    if (lab.is_chosen()) {
        return lab.run();
    }
    if (search.is_chosen()) {
        return search.run();
    }
    if (*topology_command) {
        return *check_command  ? cli::check_topology(topology, routes)
               : *show_command ? cli::show_topology(topology, dot)
                               : cli::convert_topology(topology, format);
    }
    return *status_command ? cli::status(socket, verbose) : cli::down(socket, force);
}
