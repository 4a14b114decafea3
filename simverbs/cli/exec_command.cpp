#include "simverbs/cli/exec_command.hpp"

#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/settings_trial.hpp"
#include "simverbs/cli/unreachable_program.hpp"
#include "simverbs/cli/world_options.hpp"

#include "scenarios/engine/scenario.hpp"

namespace simverbs::cli {
namespace {

// Returns the name of the first setting that has an option and that the scenario sets as well, as
// in "--seed and run: seed"; "" where there is none. The scenario would win without a word.
std::string find_conflict(const std::vector<std::string>& given,
                          const scenarios::Scenario& scenario) {
    for (const SettingRow& row : kSettings) {
        if (given[static_cast<std::size_t>(row.setting)].empty()) {
            continue;
        }
        const bool is_fabric = row.setting == Setting::kTopology;
        if (is_fabric && scenarios::Checked(scenario.root).has("fabric")) {
            return fmt::format("{} and the scenario, which has fabric:,", option_of(row));
        }
        if (!row.key.empty() && scenario.at("run").has(row.key)) {
            return fmt::format("{} and the scenario, which has run: {}:,", option_of(row), row.key);
        }
    }
    return "";
}

}  // namespace

ExecCommand::ExecCommand(CLI::App& app, std::vector<std::string> program)
    : command_(app.add_subcommand("exec", "Run a program in a world of its own")),
      program_(std::move(program)),
      given_(kSettings.size()) {
    // For --help alone: take_program() has taken these words before.
    command_->add_option("program", program_, "the program and its arguments, all that follows --")
        ->type_name("WORD");
    for (const SettingRow& row : kSettings) {
        if (row.scope == SettingScope::kPlace) {
            continue;
        }
        std::string& value = given_[static_cast<std::size_t>(row.setting)];
        CLI::Option* const option =
            add_setting(*command_, row, [&value](const std::string& given) { value = given; });
        if (row.setting == Setting::kTopology || row.setting == Setting::kScenario) {
            take_installed_files(*option);
        }
    }
    command_->footer(
        "The world is in the process of the program, which has all of its hosts. A\n"
        "setting without an option is that of the environment: see simverbs settings.\n\n" +
        describe_exit_statuses());
}

void ExecCommand::place_settings() const {
    embed_environment();
    for (const SettingRow& row : kSettings) {
        const std::string& value = given_[static_cast<std::size_t>(row.setting)];
        if (!value.empty()) {
            setenv(row.variable.data(), value.c_str(), 1);
        }
    }
}

int ExecCommand::run() {
    if (program_.empty()) {
        return complain(
            "exec: a program is missing: simverbs exec [OPTIONS] -- PROGRAM [ARGUMENT...]", kUsage);
    }
    if (library_folder().empty()) {
        return complain(kNoLibrary, kFailed);
    }
    place_settings();
    const SettingsTrial trial = try_settings();
    for (const SettingMistake& mistake : trial.mistakes) {
        const SettingRow& row = row_of(mistake.setting);
        const bool is_given = !given_[static_cast<std::size_t>(mistake.setting)].empty();
        complain(is_given ? fmt::format("exec: {} {}", option_of(row), mistake.what)
                          : fmt::format("exec: {}={}", row.variable, mistake.what),
                 kUsage);
    }
    if (!trial.mistakes.empty()) {
        return kUsage;
    }
    if (trial.scenario) {
        if (const std::string conflict = find_conflict(given_, *trial.scenario);
            !conflict.empty()) {
            return complain(fmt::format("exec: {} exclude each other", conflict), kUsage);
        }
    }
    if (const std::string why = why_unreachable(program_); !why.empty()) {
        complain(why, kPassed);
    }
    return run_program(program_);
}

}  // namespace simverbs::cli
