#include "simverbs/cli/run_command.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "fabric/core/shell_word.hpp"
#include "fabric/topology/generators.hpp"

#include "simverbs/cli/end_signals.hpp"
#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/incomplete_files.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/run_folder.hpp"
#include "simverbs/cli/scenario_processes.hpp"
#include "simverbs/model/settings.hpp"

#include "scenarios/engine/batch.hpp"

namespace simverbs::cli {

RunCommand::RunCommand(CLI::App& app)
    : command_(app.add_subcommand("run", "Serve a world, run programs on its hosts, end it")) {
    CLI::Option* const words = command_->add_option(
        "words", words_,
        "TOPOLOGY, then HOST='COMMAND' ..., started in this order; topologies are a file, or " +
            std::string(fabric::generators()));
    words->type_name("TOPOLOGY HOST=COMMAND");
    take_installed_files(*words);
    add_scenario_or_world_options(
        *command_, scenario_,
        "instead of TOPOLOGY: says what fabric there is, what goes wrong and what to expect",
        server_, [](const SettingRow& row) { return row.scope == SettingScope::kWorld; });
    add_limit(*command_, "--time-limit", limit_, "how long the programs may take", "none");
    command_->add_flag("--quiet", quiet_, "no summary");
}

int RunCommand::run() {
    const std::size_t topologies =
        scenario_.file.empty() ? std::min<std::size_t>(words_.size(), 1) : 0;
    const auto programs = programs_of_words(std::span(words_).subspan(topologies));
    if (!programs) {
        return complain(programs.error() +
                            (scenario_.file.empty() ? "" : "; a scenario names its fabric itself"),
                        kUsage);
    }
    if (!scenario_.file.empty()) {
        return run_scenario(*programs);
    }
    if (programs->empty()) {
        return complain("run needs a topology and programs: simverbs run star:2 h0='COMMAND' ...",
                        kUsage);
    }
    return run_topology(*programs);
}

int RunCommand::run_scenario(std::vector<ProgramSpec> programs) const {
    const auto scenario = scenarios::load(scenario_.file, scenario_.settings);
    if (!scenario) {
        return complain(scenario.error(), kUsage);
    }
    scenarios::Verdict verdict = run_processes(
        *scenario, {std::move(programs), limit_.count() == 0 ? std::nullopt : std::optional(limit_),
                    server_.trace_file, server_.capture_file, EndSignals::Afterwards::kNothing});
    verdict.replay = "simverbs run --scenario " + fabric::shell_word(scenario_.file);
    for (const std::string& word : words_) {
        verdict.replay += " " + fabric::shell_word(word);
    }
    if (!verdict.error.empty()) {
        return complain(verdict.error, kUsage);
    }
    if (!quiet_ || !verdict.passed()) {
        fmt::print(stderr, "{}", scenarios::report(verdict, scenario_.settings));
    }
    if (verdict.interrupted_by != 0) {
        return kSignalled + verdict.interrupted_by;
    }
    return verdict.passed() ? kPassed : kFailed;
}

int RunCommand::run_topology(std::vector<ProgramSpec> programs) {
    server_.simulation.topology = words_.front();
    if (library_folder().empty()) {
        return complain(kNoLibrary, kFailed);
    }
    const EndSignals signals;
    const RunFolder folder;
    if (!folder.error().empty()) {
        return complain(folder.error(), kFailed);
    }
    server_.socket = folder.socket();
    const auto made = Server::make(server_);
    if (!made) {
        return complain(made.error(), kUsage);  // the socket is ours: the options are at fault
    }
    Server* const server = made->get();
    for (const ProgramSpec& program : programs) {
        if (!server->has_host(program.host)) {
            return complain(fmt::format("topology '{}' has no host '{}'",
                                        server_.simulation.topology, program.host),
                            kUsage);
        }
    }
    server->expect_programs(programs.size());
    std::thread serving([&server] { server->run(); });
    int status = kFailed;
    {
        Programs running(*server, folder, std::move(programs));
        if (!quiet_) {
            running.tell_failures();
        }
        status = running.run(limit_.count() == 0 ? std::nullopt : std::optional(limit_));
    }
    server->stop();
    serving.join();
    if (!complain_of_incomplete(*server) && status == kPassed) {
        status = kFailed;
    }
    if (!quiet_) {
        fmt::print(stderr, "simverbs: {}\n", server->summary());
    }
    return status;
}

}  // namespace simverbs::cli
