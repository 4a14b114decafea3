#include "simverbs/cli/scenario_processes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "simverbs/cli/end_signals.hpp"
#include "simverbs/cli/run_folder.hpp"
#include "simverbs/cli/served_scenario.hpp"
#include "simverbs/server/server.hpp"

#include "scenarios/engine/explain.hpp"
#include "scenarios/engine/faults.hpp"
#include "scenarios/engine/judge.hpp"
#include "scenarios/engine/witness.hpp"

namespace simverbs::cli {
namespace {

constexpr std::int64_t kPicosecondsInMillisecond = 1'000'000'000;

ServerOptions options_of(const scenarios::Scenario& scenario, const ProcessOptions& options) {
    ServerOptions made;
    // A scenario is the same run however it is served: defaults are those of embedded worlds.
    for (const SettingRow& row : kSettings) {
        if (!row.served_default.empty()) {
            set(made, row.setting, row.by_default);
        }
    }
    take_settings(scenario, made);
    made.trace_file = options.trace_file;
    made.capture_file = options.capture_file;
    return made;
}

scenarios::Record record_of(const fabric::trace::TraceRecord& record,
                            const fabric::Network& network) {
    using Kind = fabric::trace::Field::Kind;
    scenarios::Record seen{fabric::to_picoseconds(record.time),
                           network.node(record.node).name(),
                           to_string(record.category),
                           record.name,
                           {}};
    seen.fields.reserve(record.fields.size());
    for (const fabric::trace::Field& field : record.fields) {
        std::string text;
        switch (field.kind) {
            case Kind::kSigned:
                text = std::to_string(static_cast<std::int64_t>(field.number));
                break;
            case Kind::kUnsigned:
                text = std::to_string(field.number);
                break;
            case Kind::kBool:
                text = field.number != 0 ? "true" : "false";
                break;
            case Kind::kText:
            case Kind::kEnum:
                text = field.text;
        }
        seen.fields.push_back({field.name, std::move(text), field.number});
    }
    return seen;
}

std::vector<ProgramSpec> programs_of(const scenarios::Scenario& scenario) {
    std::vector<ProgramSpec> specs;
    for (const auto& [host, body] : scenario.at("hosts").entries()) {
        const scenarios::Checked checked(body);
        if (checked.has("run")) {
            specs.push_back({host.text, checked.text("run")});
        }
    }
    return specs;
}

std::optional<std::chrono::milliseconds> limit_of(const scenarios::Scenario& scenario,
                                                  const ProcessOptions& options) {
    const scenarios::Checked run = scenario.at("run");
    if (options.time_limit || !run.has("time_limit")) {
        return options.time_limit;
    }
    return std::chrono::milliseconds(run.duration("time_limit") / kPicosecondsInMillisecond);
}

// Returns what is wrong before anything is started; "" where nothing is.
std::string refuse(const scenarios::Scenario& scenario, const std::vector<ProgramSpec>& programs) {
    if (std::string operations = describe_operations(scenario); !operations.empty()) {
        return operations;
    }
    if (programs.empty()) {
        return fmt::format(
            "{}: no processes: give HOST='COMMAND', or hosts that have \"run: COMMAND\"",
            scenario.file);
    }
    const std::vector<std::string> hosts = scenario.hosts();
    for (const ProgramSpec& program : programs) {
        if (std::find(hosts.begin(), hosts.end(), program.host) == hosts.end()) {
            return fmt::format("{}: its fabric has no host \"{}\"", scenario.file, program.host);
        }
    }
    return "";
}

void judge_programs(scenarios::Judge& judge, const scenarios::Checked& expect,
                    const std::vector<ProgramSpec>& specs, const std::vector<int>& statuses) {
    for (std::size_t i = 0; i < statuses.size(); ++i) {
        judge.judge_exit(expect.at("exit"), specs[i].host, specs[i].command, statuses[i]);
    }
    judge.judge_end(expect, {});
}

// Adds what the world says of the run to its verdict.
void add_run(scenarios::Verdict& verdict, const Server& server, const scenarios::Witness& witness) {
    for (const std::string& file : server.incomplete_files()) {
        verdict.failures.push_back(
            {{}, witness.now(), "all of it is written", file, "incomplete file"});
    }
    verdict.time_ps = witness.now();
    verdict.digest = witness.digest();
    verdict.deterministic = server.marks().deterministic();
    verdict.mark = verdict.deterministic ? "" : server.marks().describe();
}

}  // namespace

scenarios::Verdict run_processes(const scenarios::Scenario& scenario,
                                 const ProcessOptions& options) {
    scenarios::Verdict verdict;
    verdict.file = scenario.file;
    verdict.included = scenario.included;
    const std::vector<ProgramSpec> specs =
        options.programs.empty() ? programs_of(scenario) : options.programs;
    verdict.error = refuse(scenario, specs);
    verdict.is_input = !verdict.error.empty();
    if (verdict.error.empty() && library_folder().empty()) {
        verdict.error = kNoLibrary;
    }
    const EndSignals signals(options.signals);
    const RunFolder folder;
    if (verdict.error.empty()) {
        verdict.error = folder.error();
    }
    if (!verdict.error.empty()) {
        return verdict;
    }
    ServerOptions server_options = options_of(scenario, options);
    server_options.socket = folder.socket();
    const auto made = make_server(scenario, server_options);
    if (!made) {
        verdict.error = made.error();
        return verdict;
    }
    Server* const server = made->get();
    scenarios::Witness witness(scenario);
    server->listen([&](const fabric::trace::TraceRecord& record) {
        witness.see(record_of(record, server->network()));
    });
    ServedFaults sink(*server);
    scenarios::Faults faults(witness, sink);
    verdict.error = faults.inject_all(scenario);
    if (!verdict.error.empty()) {
        verdict.is_input = true;
        return verdict;
    }
    server->expect_programs(specs.size());
    std::thread serving([&server] { server->run(); });
    Programs programs(*server, folder, specs);
    programs.run(limit_of(scenario, options));
    verdict.is_late = programs.was_late();
    verdict.exit_statuses = programs.statuses();
    server->stop();
    serving.join();
    server->listen({});

    witness.end(fabric::to_picoseconds(server->now()), server->run_digest());
    scenarios::Judge judge(witness, faults);
    verdict.interrupted_by = EndSignals::first();
    if (verdict.interrupted_by == 0) {
        judge_programs(judge, scenario.at("expect"), specs, verdict.exit_statuses);
    }
    verdict.failures = judge.failures();
    add_run(verdict, *server, witness);
    scenarios::add_explanation(verdict, witness);
    scenarios::add_findings(verdict, witness, faults);
    verdict.completed = witness.completed();
    verdict.events = witness.events();
    return verdict;
}

scenarios::Verdict run_scenario(const scenarios::Scenario& scenario,
                                const scenarios::RunOptions& options) {
    if (scenario.has_processes()) {
        return run_processes(
            scenario, {.trace_file = options.files.trace, .capture_file = options.files.capture});
    }
    return scenarios::run(scenario, options);
}

}  // namespace simverbs::cli
