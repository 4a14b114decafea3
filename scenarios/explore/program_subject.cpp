// Explores a program that has its world in its own process: it is forked where a fault would act,
// or started anew for each branch.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/core/shell_word.hpp"
#include "fabric/core/temporary_folder.hpp"

#include "simverbs/model/branch_report.hpp"

#include "scenarios/engine/explain.hpp"
#include "scenarios/engine/fired_faults.hpp"
#include "scenarios/explore/branch_reports.hpp"
#include "scenarios/explore/faulty_scenario.hpp"
#include "scenarios/explore/library_path.hpp"
#include "scenarios/explore/program_output.hpp"
#include "scenarios/explore/traced_places.hpp"
#include "scenarios/search/variation.hpp"

namespace scenarios {

namespace {

// How the library says that a scenario means nothing in the world of the program.
constexpr std::string_view kRefusal = "simverbs: SIMVERBS_SCENARIO: ";
// Branches for which the program is started once at most, if it can fork.
constexpr std::size_t kBranchesOfRun = 256;

using Clock = std::chrono::steady_clock;

class ProgramSubject final : public Subject {
  public:
    explicit ProgramSubject(ExploredProgram program)
        : program_(std::move(program)),
          name_(fmt::format("{}", fmt::join(program_.command, " "))) {}

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] std::size_t branches_of_process() const override {
        return program_.forks ? kBranchesOfRun : 1;
    }
    [[nodiscard]] bool keeps_limits() const override { return true; }

    [[nodiscard]] std::string reproducer(const Branch& branch) const override {
        return faults_text(branch, false);
    }

    [[nodiscard]] std::string replay(const std::string& file) const override {
        return "simverbs exec --warn --scenario " + fabric::shell_word(file) + " --" + command();
    }

    [[nodiscard]] std::string check() const override { return "simverbs check --" + command(); }
    // Threads that run as they like take no turns.
    [[nodiscard]] bool may_have_threads() const override {
        const char* const schedule = std::getenv("SIMVERBS_SCHEDULE");
        return schedule == nullptr || std::string_view(schedule) != "free";
    }

    [[nodiscard]] BranchResult run(const Branch& branch) const override {
        const std::string stem = stem_of_process();
        const std::string trace = stem + ".jsonl";
        std::ofstream(stem + ".yaml") << faults_text(branch, branch.with_places);
        Environment environment = environment_with(stem, branch.limit);
        if (branch.with_places || branch.with_explanation) {
            environment.emplace_back("SIMVERBS_TRACE", trace);
            environment.emplace_back("SIMVERBS_TRACE_FLUSH", "1");  // it may be killed
        }
        BranchResult result;
        const Ended ended = run_program(program_.command, variations().front(), environment,
                                        stem + ".output", branch.limit);
        const BranchReports reports = read_branch_reports(stem + ".reports");
        judge(ended, branch.is_repaired, result);
        take_end_of_worlds(reports, "", result);
        if (result.outcome == Outcome::kPassed && !all_fired(reports, branch)) {
            result.outcome = Outcome::kMissed;
        }
        if (branch.with_explanation) {
            if (const auto records = read_trace(trace)) {
                const auto failure = scenarios::explain(*records, {});
                result.explanation = failure ? *failure : describe_fired_faults(*records);
            }
        }
        if (branch.with_places) {
            add_places(trace, result);
        }
        remove_files(stem);
        return result;
    }

    [[nodiscard]] std::vector<BranchResult> run_all(std::span<const Branch> branches,
                                                    Clock::time_point end) const override {
        if (!program_.forks || branches.size() == 1 || !have_faults_in_common(branches) ||
            std::ranges::any_of(branches, starts_anew)) {
            return Subject::run_all(branches, end);
        }
        std::vector<std::optional<BranchResult>> forked = run_forking(branches, end);
        std::vector<BranchResult> results;
        for (std::size_t i = 0; i < branches.size(); ++i) {
            if (!forked[i] && Clock::now() >= end) {
                break;
            }
            results.push_back(forked[i] ? std::move(*forked[i]) : run(branches[i]));
        }
        return results;
    }

  private:
    // Its words, each behind a space.
    [[nodiscard]] std::string command() const {
        std::string text;
        for (const std::string& word : program_.command) {
            text += " " + fabric::shell_word(word);
        }
        return text;
    }

    // Its trace is asked for, or it has no fault at which the program could be forked.
    static bool starts_anew(const Branch& branch) {
        return branch.with_places || branch.with_explanation ||
               std::ranges::any_of(branch.choices,
                                   [](const Choice& choice) { return choice.order.has_value(); });
    }

    // All faults but the last one of each.
    static bool have_faults_in_common(std::span<const Branch> branches) {
        const auto before_last = [](const Branch& branch) {
            return std::span(branch.choices).first(branch.choices.size() - 1);
        };
        return std::ranges::all_of(branches, [&](const Branch& branch) {
            return std::ranges::equal(before_last(branch), before_last(branches.front()), {},
                                      &Choice::fault, &Choice::fault);
        });
    }

    // Runs the program once, which forks where the last fault of each branch would act. Returns
    // nothing of a branch for which it did not.
    [[nodiscard]] std::vector<std::optional<BranchResult>> run_forking(
        std::span<const Branch> branches, Clock::time_point end) const {
        const std::string stem = stem_of_process();
        std::ofstream(stem + ".yaml") << forking_text(branches);
        const std::chrono::milliseconds limit = branches.front().limit;
        // Each branch has its limit. The program takes as long as without faults besides.
        std::chrono::milliseconds limit_of_all = limit * (std::ssize(branches) + 1);
        if (end != Clock::time_point::max()) {
            limit_of_all = std::clamp(
                std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()),
                std::chrono::milliseconds::zero(), limit_of_all);
        }
        Environment environment = environment_with(stem, limit);
        // Else each child would look for the same symbols again.
        environment.emplace_back("LD_BIND_NOW", "1");
        const Ended program = run_program(program_.command, variations().front(), environment,
                                          stem + ".output", limit_of_all);
        const BranchReports reports = read_branch_reports(stem + ".reports");
        std::vector<std::optional<BranchResult>> results(branches.size());
        for (std::size_t i = 0; i < branches.size(); ++i) {
            const auto ended = reports.ended.find(forking_name(i));
            if (ended != reports.ended.end()) {
                judge(ended->second, branches[i].is_repaired, results[i].emplace());
                take_end_of_worlds(reports, forking_name(i), *results[i]);
                results[i]->is_forked = true;
            } else if (program.well() && reports.has_started &&
                       !reports.obstacles.contains(forking_name(i))) {
                results[i].emplace().outcome = Outcome::kMissed;
            }
        }
        remove_files(stem);
        return results;
    }

    [[nodiscard]] std::string stem_of_process() const {
        return place_.file(fmt::format("branch-{}", getpid()));
    }

    static void remove_files(const std::string& stem) {
        std::error_code ignored;
        for (const char* const ending : {".yaml", ".jsonl", ".output", ".reports"}) {
            std::filesystem::remove(stem + ending, ignored);
        }
    }

    [[nodiscard]] Environment environment_with(const std::string& stem,
                                               std::chrono::milliseconds limit) const {
        Environment environment = library_path(program_.libraries);
        environment.emplace_back("SIMVERBS_SCENARIO", stem + ".yaml");
        environment.emplace_back("SIMVERBS_WARN", "1");  // names mistakes
        environment.push_back(variable_for_reports(stem + ".reports", stem + ".output", limit));
        return environment;
    }

    // Returns true also where the program cannot report what has fired.
    static bool all_fired(const BranchReports& reports, const Branch& branch) {
        for (std::size_t i = 0; reports.has_started && i < branch.choices.size(); ++i) {
            if (!branch.choices[i].order && !reports.fired.contains(fault_name(i))) {
                return false;
            }
        }
        return true;
    }

    // A program that died has said nothing.
    static void take_end_of_worlds(const BranchReports& reports, const std::string& branch,
                                   BranchResult& result) {
        if (const auto end = reports.worlds.find(branch); end != reports.worlds.end()) {
            result.time_ps = end->second.time_ps;
            result.run_digest = end->second.digest;
            result.marks = end->second.marks;
            result.turns_digest = end->second.turns_digest;
        }
    }

    static void judge(const Ended& ended, bool is_repaired, BranchResult& result) {
        result.ended_well = ended.well();
        result.mistakes = mistakes_in(ended.output);
        if (ended.well()) {
            return;
        }
        if (ended.is_late) {
            result.outcome = Outcome::kHangs;
            result.kind = "it did not end";
            result.happened = ended.output;
            return;
        }
        if (const std::string refusal = line_with(ended.output, kRefusal); !refusal.empty()) {
            result.outcome = Outcome::kFailed;
            result.kind = "error";
            result.happened = refusal;
            return;
        }
        const std::string telling = telling_line(ended.output);
        const bool crashed = WIFSIGNALED(ended.status) || is_of_sanitizer(telling);
        // A program may give up when what it needs is gone for good.
        if (!crashed && !is_repaired && ended.error.empty()) {
            return;
        }
        result.outcome = crashed ? Outcome::kCrashed : Outcome::kFailed;
        result.kind = ended.in_words();
        result.cause = telling;
        result.expected = "exit status 0";
        result.happened = telling.empty() ? last_line(ended.output) : telling;
    }

    static std::string faults_text(const Branch& branch, bool with_observer) {
        std::string text = fabric_of_environment();
        std::string faults;
        if (with_observer) {
            faults += fmt::format("- {}\n", observer_text());
            for (const std::string& observer : call_observers()) {
                faults += fmt::format("- {}\n", observer);
            }
        }
        for (std::size_t i = 0; i < branch.choices.size(); ++i) {
            if (const auto& order = branch.choices[i].order) {
                text += fmt::format("run: {{order: {}}}\n", *order);
            } else {
                faults += fmt::format("- {}\n", fault_text(branch, i));
            }
        }
        return text + "faults:\n" + faults;
    }

    static std::string forking_name(std::size_t branch) {
        return fmt::format("{}{}", simverbs::kForkingFault, branch + 1);
    }

    // The faults that all branches have, then the last one of each.
    static std::string forking_text(std::span<const Branch> branches) {
        Branch common = branches.front();
        common.choices.pop_back();
        std::string text = faults_text(common, false);
        for (std::size_t i = 0; i < branches.size(); ++i) {
            text += fmt::format("- {{name: {}, {}}}\n", forking_name(i),
                                branches[i].choices.back().fault);
        }
        return text;
    }

    // The topology of the environment, by whose names faults are written.
    static std::string fabric_of_environment() {
        const char* const topology = std::getenv("SIMVERBS_TOPOLOGY");
        return topology == nullptr ? "" : fabric_text(topology);
    }

    ExploredProgram program_;
    std::string name_;
    fabric::TemporaryFolder place_{"simverbs-explore-"};
};

}  // namespace

std::unique_ptr<Subject> program_subject(ExploredProgram program) {
    return std::make_unique<ProgramSubject>(std::move(program));
}

}  // namespace scenarios
