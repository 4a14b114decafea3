#include "simverbs/cli/search_commands.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/counted.hpp"
#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/output_option.hpp"
#include "simverbs/cli/progress.hpp"
#include "simverbs/cli/scenario_processes.hpp"
#include "simverbs/cli/world_options.hpp"

#include "scenarios/engine/batch.hpp"

namespace simverbs::cli {

namespace {

// Returns the part that `text` says (I/N), or the environment's where it is empty.
fabric::Outcome<scenarios::Shard> shard_of(const std::string& text) {
    if (text.empty()) {
        return scenarios::shard_of_environment(
            [](const char* name) -> const char* { return std::getenv(name); });
    }
    const auto shard = scenarios::parse_shard(text);
    if (!shard) {
        return fabric::Failure("--shard " + text + ": expected I/N, I from 0 to N - 1");
    }
    return *shard;
}

// Returns the size of a shrunk or kept scenario in words.
std::string in_words(const scenarios::ScenarioSize& size) {
    return fmt::format(
        "{}, {}, {}", fabric::counted(size.faults, "firing of a fault", "firings of faults"),
        fabric::counted(size.hosts, "host"), fabric::counted(size.operations, "operation"));
}

std::string summary(const scenarios::SweepResult& result, const scenarios::SweepOptions& options) {
    const scenarios::Shard& shard = options.shard;
    std::string text = fmt::format(
        "{} of {} passed{}; {}\n", result.run - result.failed, fabric::counted(result.run, "seed"),
        shard.count == 1 ? "" : fmt::format(" in part {}/{}", shard.index, shard.count),
        fabric::counted(result.digests.size(), "different run"));
    if (result.left > 0) {
        text +=
            fmt::format("{} left out: {}\n", fabric::counted(result.left, "seed was", "seeds were"),
                        result.stopped ? "interrupted" : "a limit was reached");
    }
    if (result.not_deterministic > 0) {
        text += fmt::format("{} marked as not deterministic: see simverbs check\n",
                            fabric::counted(result.not_deterministic, "run is", "runs are"));
    }
    if (!options.swarm && result.run > 1 && result.digests.size() == 1) {
        text += "the seed changes nothing here: give a fault a chance, or mix some in by --swarm\n";
    }
    return text;
}

// Returns the exit status of a check that did not find the same run each time.
int status_of(const scenarios::CheckResult& result) {
    switch (result.obstacle()) {
        case scenarios::Obstacle::kNoProgram:
            return kNotFound;
        case scenarios::Obstacle::kInput:
            return kUsage;
        case scenarios::Obstacle::kNone:
            break;
    }
    return kFailed;
}

void add_settings(CLI::App& command, std::vector<std::string>& settings) {
    command.add_option("--set", settings, "a change of the file")
        ->type_name("KEY.KEY=VALUE")
        ->allow_extra_args(false);
}

void add_jobs(CLI::App& command, unsigned& jobs) {
    command.add_option("-j,--jobs", jobs, "so many at once")->check(CLI::Range(1, 1024));
}

}  // namespace

SearchCommands::SearchCommands(CLI::App& app, std::vector<std::string> program)
    : program_(std::move(program)) {
    add_check(app);
    add_sweep(app);
    add_shrink(app);
}

void SearchCommands::add_check(CLI::App& app) {
    check_ = app.add_subcommand(
        "check", "Run scenarios, or -- COMMAND, again and again: is it the same run each time?");
    CLI::Option* const files =
        check_->add_option("files", checked_, "scenarios, and folders of .yaml files");
    files->type_name("SCENARIO");
    take_installed_files(*files);
    add_settings(*check_, check_options_.settings);
    check_
        ->add_option("--with", check_options_.builds,
                     "another build of simverbs, which runs the scenarios too")
        ->allow_extra_args(false)
        ->type_name("FILE")
        ->check(CLI::ExistingFile);
    add_jobs(*check_, check_options_.jobs);
    check_->add_option("--keep", check_options_.folder, "folder for the traces of runs that differ")
        ->type_name("DIR");
    add_limit(*check_, "--run-limit", check_options_.limit, "a run that takes longer fails",
              "10min");
    check_->add_flag("--quiet", quiet_, "only what differs, and the sum");
    check_->footer(
        std::string() +
        "Each runs in fresh processes: as it is, with fixed addresses, on one processor,\n"
        "with other memory. Of a program that uses simverbs in its own process:\n"
        "simverbs check -- COMMAND\n\n" +
        describe_exit_statuses());
}

void SearchCommands::add_scenario(CLI::App& command) {
    CLI::Option* const file = command.add_option("file", file_, "the scenario");
    file->type_name("SCENARIO")->required();
    take_installed_files(*file);
}

void SearchCommands::add_sweep(CLI::App& app) {
    sweep_ = app.add_subcommand("sweep", "Run a scenario with many seeds; keep those that fail");
    add_scenario(*sweep_);
    add_settings(*sweep_, sweep_options_.settings);
    sweep_->add_option("-n,--seeds", sweep_options_.seeds, "how many")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    sweep_->add_option("--first", sweep_options_.first, "the first of them")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 62));
    add_jobs(*sweep_, sweep_options_.jobs);
    add_limit(*sweep_, "--time-limit", sweep_options_.limit, "no seed is begun after it", "none");
    add_limit(*sweep_, "--seed-limit", sweep_options_.seed_limit, "a seed that takes longer fails",
              "1min");
    sweep_->add_option("--failures", sweep_options_.most_failures,
                       "end after so many; 0: with the seeds");
    sweep_->add_option("--keep", sweep_options_.folder, "folder for seed-S.yaml of each that fails")
        ->type_name("DIR");
    sweep_
        ->add_option("--shard", shard_,
                     "every N-th seed from the I-th, I from 0. Left out: the rank of mpirun "
                     "(OMPI_COMM_WORLD_RANK, _SIZE), the task of a Slurm array "
                     "(SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP), or both; else all")
        ->type_name("I/N");
    CLI::Option* const swarm = sweep_->add_flag(
        "--swarm", swarm_, "mix in random faults, heal them, and demand that everything completes");
    sweep_->add_option("--faults", swarm_options_.faults, "of a swarm: at most so many a run")
        ->check(CLI::Range(1U, scenarios::SwarmOptions::kMostFaults))
        ->needs(swarm);
    sweep_
        ->add_option_function<std::string>(
            "--heal",
            [this](const std::string& text) {
                const auto time = fabric::yaml::parse_duration(text);
                if (!time || time->count() <= 0) {
                    throw CLI::ValidationError("--heal",
                                               text + ": expected a time with a unit, as 5ms" +
                                                   (time ? "" : " (" + time.error() + ")"));
                }
                swarm_options_.heal_ps = time->count();
            },
            "of a swarm: virtual time by which all faults are over, 5ms")
        ->type_name("DURATION")
        ->default_str("as long as the connections' time-outs bear, at most 20ms")
        ->needs(swarm);
}

void SearchCommands::add_shrink(CLI::App& app) {
    shrink_ = app.add_subcommand("shrink", "Make a scenario that fails small");
    add_scenario(*shrink_);
    add_settings(*shrink_, shrink_options_.settings);
    shrink_->add_option("--seed", shrink_options_.seed, "the seed with which it fails")
        ->default_str("that of the file");
    add_output(*shrink_, small_file_, "the small scenario");
    shrink_->add_option("--runs", shrink_options_.most_runs, "at most so many")
        ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}));
    add_limit(*shrink_, "--run-limit", shrink_options_.limit,
              "a run that takes longer fails by that", "1min");
}

bool SearchCommands::is_chosen() const {
    return check_->parsed() || sweep_->parsed() || shrink_->parsed();
}

int SearchCommands::run() {
    if (check_->parsed()) {
        return check();
    }
    return sweep_->parsed() ? sweep() : shrink();
}

int SearchCommands::check() {
    const auto found = scenarios::find_files(checked_);
    const std::vector<std::string> files = found.value_or(std::vector<std::string>{});
    std::string error = found ? "" : found.error();
    if (error.empty() && files.empty() == program_.empty()) {
        error = files.empty() ? "simverbs check: no files and no -- COMMAND; see --help"
                              : "simverbs check: files or -- COMMAND, not both";
    }
    if (error.empty() && !program_.empty() &&
        !(check_options_.builds.empty() && check_options_.settings.empty())) {
        error = "simverbs check: --with and --set are for files";
    }
    if (!error.empty()) {
        std::cerr << error << "\n";
        return kUsage;
    }
    check_options_.builds.insert(check_options_.builds.begin(), "/proc/self/exe");
    check_options_.libraries = library_folder();
    std::size_t same = 0;
    std::size_t looked_at = 0;
    int status = kPassed;
    Progress progress("runs");
    check_options_.onlooker = [&](const scenarios::Stage& stage) { return progress.look(stage); };
    const auto tell = [&](const scenarios::CheckResult& result) {
        progress.clear();
        if (result.stopped) {
            std::cout << "INTERRUPTED " << result.subject << "\n";
            return false;
        }
        ++looked_at;
        same += result.is_same() ? 1 : 0;
        status = std::max(status, result.is_same() ? kPassed : status_of(result));
        if (!quiet_ || !result.is_same()) {
            std::cout << scenarios::report(result) << std::flush;
        }
        return true;
    };
    if (!program_.empty()) {
        tell(scenarios::check_program(program_, check_options_));
        return Progress::status(status);
    }
    std::ranges::any_of(files, [&](const std::string& file) {
        return !tell(scenarios::check_scenario(file, check_options_));
    });
    std::cout << same << " of " << looked_at << " repeat themselves\n";
    return Progress::status(status);
}

int SearchCommands::sweep() {
    const auto shard = shard_of(shard_);
    if (!shard) {
        std::cerr << shard.error() << "\n";
        return kUsage;
    }
    sweep_options_.shard = *shard;
    sweep_options_.runner = run_scenario;
    if (swarm_) {
        sweep_options_.swarm = swarm_options_;
    }
    Progress progress("seeds");
    sweep_options_.onlooker = [&](const scenarios::Stage& stage) { return progress.look(stage); };
    const scenarios::SweepResult result =
        scenarios::sweep(file_, sweep_options_, [&](const scenarios::FailedSeed& failed) {
            progress.clear();
            std::cout << scenarios::report(failed) << std::flush;
        });
    progress.clear();
    if (!result.error.empty()) {
        std::cerr << result.error << "\n";
        return kUsage;
    }
    std::cout << summary(result, sweep_options_);
    const int status = result.failed == 0 ? kPassed : kFailed;
    return result.stopped ? Progress::status(status) : status;
}

int SearchCommands::shrink() {
    if (!small_file_.empty() && !can_write(small_file_)) {
        std::cerr << small_file_ << " cannot be written\n";
        return kUsage;
    }
    shrink_options_.runner = run_scenario;
    Progress progress("runs", Progress::End::kUnknown);
    shrink_options_.onlooker = [&](const scenarios::Stage& stage) { return progress.look(stage); };
    const scenarios::ShrinkResult result =
        scenarios::shrink(file_, shrink_options_, [&](std::string_view step) {
            progress.clear();
            std::cerr << step << "\n";
        });
    progress.clear();
    if (!result.error.empty()) {
        std::cerr << result.error << "\n";
        return kUsage;
    }
    if (result.text.empty()) {
        std::cerr << "interrupted before anything was known\n";
        return Progress::status(kFailed);
    }
    std::cerr << fmt::format("{}{}: from {} to {}\n", fabric::counted(result.runs, "run"),
                             result.stopped   ? " (interrupted)"
                             : result.ran_out ? " (no more were allowed)"
                                              : "",
                             in_words(result.before), in_words(result.after));
    // A signal that comes when the search has ended interrupts nothing.
    const int status = result.stopped ? Progress::status(kPassed) : kPassed;
    if (small_file_.empty()) {
        std::cout << result.text;
        return status;
    }
    std::ofstream out(small_file_);
    out << result.text;
    out.close();
    if (!out) {
        std::cerr << small_file_ << " cannot be written\n";
        return kFailed;
    }
    scenarios::Verdict verdict = result.verdict;
    verdict.file = small_file_;
    std::cerr << scenarios::report(verdict, {});
    return status;
}

}  // namespace simverbs::cli
