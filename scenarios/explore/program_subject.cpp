// Explores a program that has its world in its own process, started anew for each branch.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/core/shell_word.hpp"
#include "fabric/core/temporary_folder.hpp"

#include "scenarios/engine/explain.hpp"
#include "scenarios/explore/faulty_scenario.hpp"
#include "scenarios/explore/program_output.hpp"
#include "scenarios/explore/traced_places.hpp"
#include "scenarios/search/variation.hpp"

namespace scenarios {

namespace {

// How the library says that a scenario means nothing in the world of the program.
constexpr std::string_view kRefusal = "simverbs: SIMVERBS_SCENARIO: ";

class ProgramSubject final : public Subject {
  public:
    ProgramSubject(std::vector<std::string> command, std::string libraries)
        : command_(std::move(command)),
          libraries_(std::move(libraries)),
          name_(fmt::format("{}", fmt::join(command_, " "))) {}

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] std::size_t branches_of_process() const override { return 1; }

    [[nodiscard]] std::string reproducer(const Branch& branch) const override {
        return faults_text(branch, false);
    }

    [[nodiscard]] std::string replay(const std::string& file) const override {
        std::string text = "simverbs exec --scenario " + fabric::shell_word(file) + " --";
        for (const std::string& word : command_) {
            text += " " + fabric::shell_word(word);
        }
        return text;
    }

    [[nodiscard]] BranchResult run(const Branch& branch) const override {
        const std::string stem = place_.file(fmt::format("branch-{}", getpid()));
        const std::string trace = stem + ".jsonl";
        std::ofstream(stem + ".yaml") << faults_text(branch, branch.with_places);
        Environment environment = {{"SIMVERBS_SCENARIO", stem + ".yaml"}};
        if (branch.with_places || branch.with_explanation) {
            environment.emplace_back("SIMVERBS_TRACE", trace);
            environment.emplace_back("SIMVERBS_TRACE_FLUSH", "1");  // it may be killed
        }
        if (!libraries_.empty()) {
            const char* const earlier = std::getenv("LD_LIBRARY_PATH");
            environment.emplace_back(
                "LD_LIBRARY_PATH",
                libraries_ + (earlier == nullptr ? "" : fmt::format(":{}", earlier)));
        }
        BranchResult result;
        judge(run_program(command_, variations().front(), environment, stem + ".output",
                          branch.limit),
              branch.is_repaired, result);
        if (branch.with_explanation) {
            if (const auto records = read_trace(trace)) {
                result.explanation = scenarios::explain(*records, {}).value_or("");
            }
        }
        if (branch.with_places) {
            add_places(trace, result);
        }
        std::error_code ignored;
        for (const char* const ending : {".yaml", ".jsonl", ".output"}) {
            std::filesystem::remove(stem + ending, ignored);
        }
        return result;
    }

  private:
    static void judge(const Ended& ended, bool is_repaired, BranchResult& result) {
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
        std::string text = fabric_of_environment() + "faults:\n";
        if (with_observer) {
            text += fmt::format("- {}\n", observer_text());
        }
        for (std::size_t i = 0; i < branch.choices.size(); ++i) {
            text += fmt::format("- {}\n", fault_text(branch, i));
        }
        return text;
    }

    // The topology of the environment, by whose names faults are written.
    static std::string fabric_of_environment() {
        const char* const topology = std::getenv("SIMVERBS_TOPOLOGY");
        return topology == nullptr ? "" : fabric_text(topology);
    }

    std::vector<std::string> command_;
    std::string libraries_;
    std::string name_;
    fabric::TemporaryFolder place_{"simverbs-explore-"};
};

}  // namespace

std::unique_ptr<Subject> program_subject(std::vector<std::string> command, std::string libraries) {
    return std::make_unique<ProgramSubject>(std::move(command), std::move(libraries));
}

}  // namespace scenarios
