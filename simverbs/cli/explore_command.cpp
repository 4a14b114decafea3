#include "simverbs/cli/explore_command.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>

#include <fmt/core.h>

#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/output_option.hpp"
#include "simverbs/cli/served_subject.hpp"
#include "simverbs/cli/world_options.hpp"

#include "scenarios/explore/faulty_scenario.hpp"
#include "scenarios/explore/google_test.hpp"
#include "scenarios/explore/html_map.hpp"
#include "scenarios/explore/junit.hpp"

namespace simverbs::cli {

ExploreCommand::ExploreCommand(CLI::App& app, std::vector<std::string> program)
    : explore_(app.add_subcommand("explore",
                                  "Try every fault at every place of a scenario or of programs")),
      run_(explore_->add_subcommand("run", "Programs of a served world, as simverbs run has them")),
      program_(std::move(program)) {
    run_->fallthrough();
    CLI::Option* const words = run_->add_option(
        "words", words_, "TOPOLOGY, then HOST='COMMAND' ..., started in this order");
    words->type_name("TOPOLOGY HOST=COMMAND");
    take_installed_files(*words);
    CLI::Option* const file = explore_->add_option("file", file_, "the scenario");
    file->type_name("SCENARIO");
    take_installed_files(*file);
    explore_->add_option("--set", settings_, "a change of the file")
        ->type_name("KEY.KEY=VALUE")
        ->allow_extra_args(false);
    explore_
        ->add_option("--depth", options_.depth,
                     "faults in a branch at most: all pairs, and more of them at random")
        ->check(CLI::Range(1, 16));
    explore_->add_option("--walks", options_.walks, "of --depth above 2: so many random walks")
        ->check(CLI::Range(0, 1'000'000));
    explore_->add_option("--seed", options_.seed,
                         "of --depth above 2: what random walks try follows from it");
    std::vector<std::string> names(std::begin(scenarios::kChoiceGroupNames),
                                   std::end(scenarios::kChoiceGroupNames));
    explore_
        ->add_option("--only", groups_,
                     fmt::format("faults of these groups: {}", fmt::join(names, ", ")))
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("GROUP")
        ->check(CLI::IsMember(names).description(""))
        ->default_str("all");
    explore_->add_option("--host", options_.host, "faults at this host alone")
        ->type_name("HOST")
        ->default_str("any");
    explore_
        ->add_option("--orders", options_.orders,
                     "of -- COMMAND with several threads: try so many orders of them")
        ->check(CLI::Range(0, 1'000'000));
    explore_->add_option("-j,--jobs", options_.jobs, "so many at once")->check(CLI::Range(1, 1024));
    add_limit(*explore_, "--budget", options_.budget, "no branch is begun after it", "none");
    add_limit(*explore_, "--run-limit", limit_, "a branch that takes longer hangs",
              "2s, or 20 times as long as the run without faults");
    explore_
        ->add_option_function<std::string>(
            "--within",
            [this](const std::string& text) {
                const auto time = fabric::yaml::parse_duration(text);
                if (!time || time->count() <= 0) {
                    throw CLI::ValidationError("--within",
                                               text + ": expected a time with a unit, as 2s" +
                                                   (time ? "" : " (" + time.error() + ")"));
                }
                options_.within = *time;
            },
            "a branch that takes more virtual time is too slow: 10ms, 2s")
        ->type_name("DURATION")
        ->default_str("any time");
    explore_->add_flag("--no-fork", no_fork_,
                       "of -- COMMAND: started anew for each branch, and not forked");
    explore_->add_option("--keep", options_.folder, "folder for explore-N.yaml of each finding")
        ->type_name("DIR");
    explore_->add_flag("--gtest", by_test_, "explore each test of a GoogleTest program by itself");
    explore_->add_option("--json", json_file_, "write the findings to FILE as JSON")
        ->type_name("FILE");
    explore_->add_option("--junit", junit_file_, "write the findings to FILE as JUnit XML")
        ->type_name("FILE");
    explore_->add_option("--html", html_file_, "write FILE, a page with a map of all faults")
        ->type_name("FILE");
}

std::unique_ptr<scenarios::Subject> ExploreCommand::make_served_subject() const {
    if (!program_.empty() || !file_.empty() || !settings_.empty()) {
        complain("explore run takes a topology and programs; no scenario, --set or -- COMMAND",
                 kUsage);
        return nullptr;
    }
    const auto programs =
        programs_of_words(std::span(words_).subspan(std::min<std::size_t>(words_.size(), 1)));
    if (!programs) {
        complain(programs.error(), kUsage);
        return nullptr;
    }
    if (programs->empty()) {
        complain(
            "explore run needs a topology and programs: simverbs explore run star:2 "
            "h0='COMMAND' ...",
            kUsage);
        return nullptr;
    }
    const auto scenario =
        scenarios::parse(scenarios::fabric_text(words_.front()), "explore run", {});
    if (!scenario) {
        complain(scenario.error(), kUsage);
        return nullptr;
    }
    return served_subject(*scenario, *programs);
}

scenarios::ExploredProgram ExploreCommand::explored_program() const {
    return {.command = program_, .libraries = library_folder(), .forks = !no_fork_};
}

std::unique_ptr<scenarios::Subject> ExploreCommand::make_subject() const {
    if (run_->parsed()) {
        return make_served_subject();
    }
    if (file_.empty() == program_.empty()) {
        complain(file_.empty() ? "explore: no scenario and no -- COMMAND; see --help"
                               : "explore: a scenario or -- COMMAND, not both",
                 kUsage);
        return nullptr;
    }
    if (!program_.empty()) {
        if (!settings_.empty()) {
            complain("explore: --set is for scenarios", kUsage);
            return nullptr;
        }
        return scenarios::program_subject(explored_program());
    }
    const auto scenario = scenarios::load(file_, settings_);
    if (!scenario) {
        std::cerr << scenario.error() << "\n";
        return nullptr;
    }
    return scenario->has_processes() ? served_subject(*scenario, {})
                                     : scenarios::scenario_subject(*scenario);
}

std::optional<scenarios::Explored> ExploreCommand::explore_tests(Progress& progress) const {
    if (run_->parsed() || program_.empty() || !file_.empty() || !settings_.empty()) {
        complain("explore --gtest takes a GoogleTest program: simverbs explore --gtest -- COMMAND",
                 kUsage);
        return std::nullopt;
    }
    scenarios::unset_google_test_variables();
    const auto tests = scenarios::list_tests(program_, library_folder());
    if (!tests) {
        complain("explore " + tests.error(), kUsage);
        return std::nullopt;
    }
    const auto tell = [&progress](const scenarios::ExploredTest& test) {
        progress.clear();
        std::cout << scenarios::report(test) << std::flush;
    };
    scenarios::Explored explored =
        scenarios::explore_tests(explored_program(), *tests, options_, tell);
    progress.clear();
    std::cout << scenarios::summary(explored);
    // --host is wrong, unless a test has such a host.
    const auto refused = std::ranges::find(
        explored.tests, scenarios::Unexplored::kNoSuchHost,
        [](const scenarios::ExploredTest& test) { return test.result.unexplored; });
    const bool none = std::ranges::all_of(
        explored.tests, [](const auto& test) { return !scenarios::not_explored(test).empty(); });
    if (none && refused != explored.tests.end()) {
        complain(fmt::format("explore --gtest: {}: {}", refused->name, refused->result.error),
                 kUsage);
        return std::nullopt;
    }
    return explored;
}

std::optional<scenarios::Explored> ExploreCommand::explore() {
    Progress progress("branches");
    options_.onlooker = [&](const scenarios::Stage& stage) { return progress.look(stage); };
    if (by_test_) {
        return explore_tests(progress);
    }
    const std::unique_ptr<scenarios::Subject> subject = make_subject();
    if (subject == nullptr) {
        return std::nullopt;
    }
    scenarios::Explored explored = scenarios::explore_whole(*subject, options_);
    const scenarios::ExploreResult& result = explored.tests.front().result;
    progress.clear();
    if (!result.error.empty()) {
        std::cerr << result.error << "\n";
        return std::nullopt;
    }
    std::cout << scenarios::report(result);
    return explored;
}

bool ExploreCommand::write_files(const scenarios::Explored& explored) const {
    const auto write = [](const std::string& file, const auto& text) {
        if (file.empty()) {
            return true;
        }
        std::ofstream out(file);
        out << text();
        out.close();
        if (!out) {
            complain(file + " cannot be written", kFailed);
        }
        return out.good();
    };
    bool written = write(json_file_, [&] { return scenarios::json(explored); });
    written = write(junit_file_, [&] { return scenarios::junit(explored); }) && written;
    return write(html_file_, [&] { return scenarios::html(explored); }) && written;
}

int ExploreCommand::run() {
    for (const std::string& file : {json_file_, junit_file_, html_file_}) {
        if (!file.empty() && !can_write(file)) {
            return complain(file + " cannot be written", kUsage);
        }
    }
    for (const std::string& group : groups_) {
        const auto found = std::ranges::find(scenarios::kChoiceGroupNames, group);
        options_.groups.push_back(
            static_cast<scenarios::ChoiceGroup>(found - std::begin(scenarios::kChoiceGroupNames)));
    }
    if (limit_ != scenarios::ProcessPool::kNoLimit) {
        options_.limit = limit_;
    }
    if (no_fork_ && program_.empty()) {
        return complain("explore: --no-fork is for -- COMMAND", kUsage);
    }
    for (const char* const option : {"--walks", "--seed"}) {
        if (options_.depth <= 2 && explore_->count(option) > 0) {
            return complain(fmt::format("explore: {} is for --depth 3 and more", option), kUsage);
        }
    }
    const std::optional<scenarios::Explored> explored = explore();
    if (!explored) {
        return Progress::status(kUsage);
    }
    if (!write_files(*explored)) {
        return kFailed;
    }
    const int status = explored->findings() == 0 ? kPassed : kFailed;
    return explored->stopped ? Progress::status(status) : status;
}

}  // namespace simverbs::cli
