#include "simverbs/cli/served_subject.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "fabric/core/shell_word.hpp"
#include "fabric/core/temporary_folder.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/scenario_processes.hpp"

#include "scenarios/explore/faulty_scenario.hpp"
#include "scenarios/explore/program_output.hpp"
#include "scenarios/explore/traced_places.hpp"
#include "scenarios/search/trial.hpp"

namespace simverbs::cli {

namespace {

using scenarios::Branch;
using scenarios::BranchResult;
using scenarios::Outcome;
using scenarios::Scenario;
using scenarios::Verdict;

// Signals by which a program dies of itself; a fault kills with SIGKILL.
constexpr int kCrashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};

// From here on this process, and what it starts, writes to `file` and reads nothing.
void redirect_to(const std::string& file) {
    const int output = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (output < 0 || input < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0 || dup2(input, STDIN_FILENO) < 0) {
        std::exit(complain(fmt::format("{} cannot be written", file), kFailed));
    }
    close(output);
    close(input);
}

bool all_ended_well(const Verdict& verdict) {
    return std::ranges::all_of(verdict.exit_statuses, [](int status) { return status == 0; });
}

bool is_crash(int status) {
    return std::ranges::find(kCrashes, status - kSignalled) != std::end(kCrashes);
}

class ServedSubject final : public scenarios::Subject {
  public:
    ServedSubject(const Scenario& scenario, std::vector<ProgramSpec> programs)
        : repaired_(scenario),
          lasting_(scenarios::expecting_little(scenario)),
          programs_(std::move(programs)),
          name_(scenario.file) {}

    [[nodiscard]] const std::string& name() const override { return name_; }
    // Its output is that of one branch.
    [[nodiscard]] std::size_t branches_of_process() const override { return 1; }

    [[nodiscard]] bool keeps_limits() const override { return false; }

    [[nodiscard]] std::string reproducer(const Branch& branch) const override {
        return scenarios::portable_text(with_faults(branch));
    }

    [[nodiscard]] std::string replay(const std::string& file) const override {
        std::string text = fmt::format("SIMVERBS_WARN=1 simverbs {} {}",
                                       programs_.empty() ? "scenario" : "run --scenario",
                                       fabric::shell_word(file));
        for (const ProgramSpec& program : programs_) {
            text += " " + fabric::shell_word(program.host + "=" + program.command);
        }
        return text;
    }

    [[nodiscard]] BranchResult run(const Branch& branch) const override {
        const std::string stem = place_.file(fmt::format("branch-{}", getpid()));
        const std::string trace = stem + ".jsonl";
        redirect_to(stem + ".output");
        setenv("SIMVERBS_WARN", "1", 1);  // programs name their mistakes
        ProcessOptions options{.programs = programs_};
        if (branch.limit != scenarios::ProcessPool::kNoLimit) {
            options.time_limit = branch.limit;
        }
        Scenario made = with_faults(branch);
        if (branch.with_places) {
            made = scenarios::with_observer(std::move(made));
            options.trace_file = trace;
        }
        const Verdict verdict = run_processes(made, options);
        BranchResult result;
        result.time_ps = verdict.time_ps;
        result.ended_well = all_ended_well(verdict);
        const std::string output = read(stem + ".output");
        result.mistakes = scenarios::mistakes_in(output);
        judge(verdict, output, branch.is_repaired, result);
        if (result.outcome == Outcome::kPassed && !scenarios::all_fired(verdict, branch)) {
            result.outcome = Outcome::kMissed;
        }
        if (branch.with_explanation) {
            result.explanation = verdict.explanation;
        }
        if (branch.with_places) {
            scenarios::add_places(trace, result);
        }
        std::error_code ignored;
        for (const char* const ending : {".jsonl", ".output"}) {
            std::filesystem::remove(stem + ending, ignored);
        }
        return result;
    }

  private:
    static std::string read(const std::string& file) {
        std::ifstream in(file);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    static void judge(const Verdict& verdict, const std::string& output, bool is_repaired,
                      BranchResult& result) {
        const auto end_with = [&result](Outcome outcome, std::string kind, std::string happened) {
            result.outcome = outcome;
            result.kind = std::move(kind);
            result.happened = std::move(happened);
        };
        const std::string telling = scenarios::telling_line(output);
        const auto crash = std::ranges::find_if(verdict.exit_statuses, is_crash);
        if (!verdict.error.empty()) {
            end_with(Outcome::kFailed, "error", verdict.error);
        } else if (crash != verdict.exit_statuses.end()) {
            const int signal = *crash - kSignalled;
            end_with(Outcome::kCrashed, fmt::format("SIG{}", sigabbrev_np(signal)), telling);
            result.cause = telling;
        } else if (scenarios::is_of_sanitizer(telling) && !all_ended_well(verdict)) {
            end_with(Outcome::kCrashed, "a sanitizer's report", telling);
            result.cause = telling;
        } else if (verdict.is_late) {
            end_with(Outcome::kHangs, "it did not end",
                     scenarios::line_with(output, "still running: "));
        } else {
            scenarios::judge(verdict, is_repaired, result);
        }
    }

    [[nodiscard]] Scenario with_faults(const Branch& branch) const {
        return scenarios::with_faults(branch.is_repaired ? repaired_ : lasting_, branch);
    }

    Scenario repaired_;  // every program must end as the scenario says
    Scenario lasting_;   // invariants alone
    std::vector<ProgramSpec> programs_;
    std::string name_;
    fabric::TemporaryFolder place_{"simverbs-explore-"};
};

}  // namespace

std::unique_ptr<scenarios::Subject> served_subject(const Scenario& scenario,
                                                   std::vector<ProgramSpec> programs) {
    return std::make_unique<ServedSubject>(scenario, std::move(programs));
}

}  // namespace simverbs::cli
