#include "simverbs/cli/served_scenario.hpp"

#include <utility>

#include "fabric/yaml/value.hpp"

#include "scenarios/engine/topology_file.hpp"
#include "scenarios/engine/usage.hpp"

namespace simverbs::cli {

std::string describe_operations(const scenarios::Scenario& scenario) {
    fabric::yaml::Errors errors(scenario.files());
    scenarios::check_for_processes(scenario, errors);
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

}  // namespace simverbs::cli
