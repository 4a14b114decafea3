#include "simverbs/cli/search_commands.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/scenario_processes.hpp"
#include "simverbs/cli/world_commands.hpp"

#include "scenarios/engine/batch.hpp"

namespace simverbs::cli {

namespace {

constexpr int kFailed = 1;

// Of wall time.
void add_limit(CLI::App& command, const std::string& name, std::chrono::milliseconds& limit,
               const std::string& description) {
    command
        .add_option_function<std::uint64_t>(
            name, [&limit](const std::uint64_t& ms) { limit = std::chrono::milliseconds(ms); },
            description + "; of wall time, with a unit: 60s, 500ms, 10min")
        ->transform(CLI::AsNumberWithUnit(
            std::map<std::string, std::uint64_t>{
                {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}},
            CLI::AsNumberWithUnit::UNIT_REQUIRED));
}

// What a shrunk or kept scenario is called in messages.
std::string in_words(const scenarios::ScenarioSize& size) {
    return fmt::format("{} firings of faults, {} hosts, {} operations", size.faults, size.hosts,
                       size.operations);
}

std::string summary(const scenarios::SweepResult& result, const scenarios::SweepOptions& options) {
    const scenarios::Shard& shard = options.shard;
    std::string text = fmt::format(
        "{} of {} seeds passed{}; {} different runs\n", result.run - result.failed, result.run,
        shard.count == 1 ? "" : fmt::format(" in part {}/{}", shard.index, shard.count),
        result.digests.size());
    if (result.left > 0) {
        text += fmt::format("{} seeds were left out: a limit was reached\n", result.left);
    }
    if (result.not_deterministic > 0) {
        text += fmt::format("{} runs are marked as not deterministic: see simverbs check\n",
                            result.not_deterministic);
    }
    if (!options.swarm && result.run > 1 && result.digests.size() == 1) {
        text += "the seed changes nothing here: give a fault a chance, or mix some in by --swarm\n";
    }
    return text;
}

}  // namespace

std::vector<std::string> take_program(int& argc, char** argv) {
    std::vector<std::string> program;
    for (int i = 2; i < argc && std::string_view(argv[1]) == "check"; ++i) {
        if (std::string_view(argv[i]) == "--") {
            program.assign(argv + i + 1, argv + argc);
            argc = i;
        }
    }
    return program;
}

SearchCommands::SearchCommands(CLI::App& app, std::vector<std::string> program)
    : program_(std::move(program)) {
    add_check(app);
    add_sweep(app);
    add_shrink(app);
}

void SearchCommands::add_check(CLI::App& app) {
    check_ = app.add_subcommand(
        "check", "Run scenarios, or -- COMMAND, again and again: is it the same run each time?");
    check_->add_option("files", checked_, "files, and folders of .yaml files");
    check_->add_option("--set", check_options_.settings, "KEY.KEY=VALUE: a change of the files")
        ->allow_extra_args(false);
    check_
        ->add_option("--with", check_options_.builds,
                     "another build of simverbs, which runs the scenarios too")
        ->allow_extra_args(false)
        ->check(CLI::ExistingFile);
    check_->add_option("-j,--jobs", check_options_.jobs, "so many at once")
        ->check(CLI::Range(1, 1024));
    check_->add_option("--keep", check_options_.folder,
                       "folder for the traces of runs that differ");
    add_limit(*check_, "--run-limit", check_options_.limit,
              "a run that takes longer fails [10min]");
    check_->add_flag("--quiet", quiet_, "only what differs, and the sum");
    check_->footer(
        "Each runs in fresh processes: as it is, with fixed addresses, on one processor, with "
        "other "
        "memory.\nOf a program that uses simverbs in its own process: simverbs check -- COMMAND");
}

void SearchCommands::add_sweep(CLI::App& app) {
    sweep_ = app.add_subcommand("sweep", "Run a scenario with many seeds; keep those that fail");
    sweep_->add_option("file", file_, "the scenario")->required();
    sweep_->add_option("--set", sweep_options_.settings, "KEY.KEY=VALUE: a change of the file")
        ->allow_extra_args(false);
    sweep_->add_option("-n,--seeds", sweep_options_.seeds, "how many")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    sweep_->add_option("--first", sweep_options_.first, "the first of them")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 62));
    sweep_->add_option("-j,--jobs", sweep_options_.jobs, "so many at once")
        ->check(CLI::Range(1, 1024));
    add_limit(*sweep_, "--time-limit", sweep_options_.limit, "no seed is begun after it");
    add_limit(*sweep_, "--seed-limit", sweep_options_.seed_limit,
              "a seed that takes longer fails [1min]");
    sweep_->add_option("--failures", sweep_options_.most_failures,
                       "end after so many; 0: with the seeds");
    sweep_->add_option("--keep", sweep_options_.folder,
                       "folder for seed-S.yaml of each that fails");
    sweep_->add_option("--shard", shard_,
                       "I/N: every N-th seed from the I-th, I from 0. Left out: the rank of mpirun "
                       "(OMPI_COMM_WORLD_RANK, _SIZE), the task of a Slurm array "
                       "(SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP), or both; else all");
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
                if (!time.value || time.value->count() <= 0) {
                    throw CLI::ValidationError(
                        "--heal", text + ": expected a time with a unit, as 5ms" +
                                      (time.error.empty() ? "" : " (" + time.error + ")"));
                }
                swarm_options_.heal_ps = time.value->count();
            },
            "of a swarm: virtual time by which all faults are over; by default as long as the "
            "connections' time-outs bear, at most 20ms")
        ->needs(swarm);
}

void SearchCommands::add_shrink(CLI::App& app) {
    shrink_ = app.add_subcommand("shrink", "Make a scenario that fails small");
    shrink_->add_option("file", file_, "the scenario")->required();
    shrink_->add_option("--set", shrink_options_.settings, "KEY.KEY=VALUE: a change of the file")
        ->allow_extra_args(false);
    shrink_->add_option("--seed", shrink_options_.seed, "with which it fails; the file's");
    shrink_->add_option("-o,--output", small_file_, "the small scenario; standard output");
    shrink_->add_option("--runs", shrink_options_.most_runs, "at most so many")
        ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}));
    add_limit(*shrink_, "--run-limit", shrink_options_.limit,
              "a run that takes longer fails by that [1min]");
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
    std::string error;
    const std::vector<std::string> files = scenarios::find_files(checked_, error);
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
    const auto tell = [&](const scenarios::CheckResult& result) {
        same += result.is_same() ? 1 : 0;
        if (!quiet_ || !result.is_same()) {
            std::cout << scenarios::report(result) << std::flush;
        }
    };
    if (!program_.empty()) {
        tell(scenarios::check_program(program_, check_options_));
        return same == 1 ? 0 : kFailed;
    }
    for (const std::string& file : files) {
        tell(scenarios::check_scenario(file, check_options_));
    }
    std::cout << same << " of " << files.size() << " repeat themselves\n";
    return same == files.size() ? 0 : kFailed;
}

int SearchCommands::sweep() {
    std::string error;
    const auto shard =
        shard_.empty()
            ? scenarios::shard_of_environment(
                  [](const char* name) -> const char* { return std::getenv(name); }, error)
            : scenarios::parse_shard(shard_);
    if (!shard) {
        std::cerr << (error.empty() ? "--shard " + shard_ + ": expected I/N, I from 0 to N - 1"
                                    : error)
                  << "\n";
        return kUsage;
    }
    sweep_options_.shard = *shard;
    sweep_options_.runner = run_scenario;
    if (swarm_) {
        sweep_options_.swarm = swarm_options_;
    }
    const scenarios::SweepResult result =
        scenarios::sweep(file_, sweep_options_, [](const scenarios::FailedSeed& failed) {
            std::cout << scenarios::report(failed) << std::flush;
        });
    if (!result.error.empty()) {
        std::cerr << result.error << "\n";
        return kUsage;
    }
    std::cout << summary(result, sweep_options_);
    return result.failed == 0 ? 0 : kFailed;
}

int SearchCommands::shrink() {
    shrink_options_.runner = run_scenario;
    const scenarios::ShrinkResult result = scenarios::shrink(
        file_, shrink_options_, [](std::string_view step) { std::cerr << step << "\n"; });
    if (!result.error.empty()) {
        std::cerr << result.error << "\n";
        return kUsage;
    }
    std::cerr << fmt::format("{} runs{}: from {} to {}\n", result.runs,
                             result.ran_out ? " (no more were allowed)" : "",
                             in_words(result.before), in_words(result.after));
    const std::string text = fmt::format("# {} made small: it fails in the same way ({}).\n{}",
                                         file_, result.kind, result.text);
    if (small_file_.empty()) {
        std::cout << text;
        return 0;
    }
    std::ofstream out(small_file_);
    out << text;
    out.close();
    if (!out) {
        std::cerr << small_file_ << " cannot be written\n";
        return kFailed;
    }
    scenarios::Verdict verdict = result.verdict;
    verdict.file = small_file_;
    std::cerr << scenarios::report(verdict, {});
    return 0;
}

}  // namespace simverbs::cli
