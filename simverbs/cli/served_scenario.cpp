#include "simverbs/cli/served_scenario.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/yaml/value.hpp"

#include "scenarios/engine/topology_file.hpp"
#include "scenarios/engine/usage.hpp"
#include "scenarios/engine/witness.hpp"

namespace simverbs::cli {

std::string describe_operations(const scenarios::Scenario& scenario) {
    fabric::yaml::Errors errors(scenario.files());
    scenarios::check_for_processes(scenario, errors);
    scenarios::refuse_order(scenario, errors);
    return errors.empty() ? "" : errors.text();
}

void take_settings(const scenarios::Scenario& scenario, ServerOptions& options) {
    const scenarios::Checked run = scenario.at("run");
    for (const SettingRow& row : kSettings) {
        if (run.has(row.key)) {
            set(options, row.setting, run.text(row.key));
        }
    }
}

fabric::Outcome<std::unique_ptr<Server>> make_server(const scenarios::Scenario& scenario,
                                                     ServerOptions options) {
    const scenarios::TopologyFile topology(scenario);
    if (!topology.error().empty()) {
        return fabric::Failure(topology.error());
    }
    options.simulation.topology = topology.spec();
    if (scenario.topology_spec.empty()) {  // the file is gone once the server is made
        options.simulation.topology_name = scenario.file;
    }
    return Server::make(options);
}

fabric::Outcome<std::unique_ptr<Server>> make_lasting_server(const scenarios::Scenario& scenario,
                                                             ServerOptions options) {
    take_settings(scenario, options);
    auto server = make_server(scenario, std::move(options));
    if (!server) {
        return server;
    }
    const scenarios::Witness names(scenario);  // tells which queue pair h0/1 is
    ServedFaults sink(**server);
    if (std::string wrong = scenarios::Faults(names, sink).inject_all(scenario); !wrong.empty()) {
        return fabric::Failure(std::move(wrong));
    }
    return server;
}

std::string describe_ignored(const scenarios::Scenario& scenario) {
    std::vector<std::string_view> ignored;
    if (!scenario.at("expect").entries().empty()) {
        ignored.emplace_back("expect is not judged");
    }
    if (scenario.has_processes()) {
        ignored.emplace_back("the programs of its hosts are not started");
    }
    if (scenario.at("run").has("time_limit")) {
        ignored.emplace_back("time_limit ends nothing");
    }
    return ignored.empty()
               ? ""
               : fmt::format("{}: the world stays, so {}", scenario.file, fmt::join(ignored, ", "));
}

}  // namespace simverbs::cli
