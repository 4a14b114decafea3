// Runs the branches of what is explored: a scenario or a program.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scenarios/engine/process_pool.hpp"
#include "scenarios/engine/scenario.hpp"
#include "scenarios/explore/branch.hpp"

namespace scenarios {

// The faults of a branch.
struct Branch {
    std::vector<Choice> choices{};
    bool is_repaired = true;        // everything must complete in spite of them
    bool with_places = false;       // its packets and surroundings are asked for
    bool with_explanation = false;  // of what failed
    // Limits the wall time of a program, which hangs if it takes longer.
    std::chrono::milliseconds limit = ProcessPool::kNoLimit;
};

// Returns an item of the list `faults`, with its name, for the choice at `index`.
std::string fault_name(std::size_t index);
std::string fault_text(const Branch& branch, std::size_t index);

// The fault that changes nothing and fires at every packet, in the order in which hosts send them;
// what it hits are the places of a run.
inline constexpr std::string_view kObserver = "explore_places";
std::string observer_text();
// Faults that change nothing and have each post, and each poll that finds something, ask for
// faults, so that the trace has it as a verb; the last one fires at each completion event.
inline constexpr std::string_view kEventObserver = "explore_events";
std::vector<std::string> call_observers();

class Subject {
  public:
    virtual ~Subject() = default;

    // Returns the scenario or the command, as messages name it.
    [[nodiscard]] virtual const std::string& name() const = 0;
    // Runs it. Called in a process of its own, once or several times.
    [[nodiscard]] virtual BranchResult run(const Branch& branch) const = 0;
    // How many branches one process may run at most, which saves the start of others.
    [[nodiscard]] virtual std::size_t branches_of_process() const = 0;
    // Runs so many, or fewer: none is begun after `end`. Returns what came of each, in their order.
    [[nodiscard]] virtual std::vector<BranchResult> run_all(
        std::span<const Branch> branches, std::chrono::steady_clock::time_point end) const;
    // Returns true if no branch takes longer than its limit.
    [[nodiscard]] virtual bool keeps_limits() const = 0;
    // Returns a scenario that makes it fail again.
    [[nodiscard]] virtual std::string reproducer(const Branch& branch) const = 0;
    // Returns the command that runs `file`, a reproducer.
    [[nodiscard]] virtual std::string replay(const std::string& file) const = 0;
    // Returns the command that compares several runs of it; "": they are known to be the same, or
    // not to be.
    [[nodiscard]] virtual std::string check() const { return ""; }
    // Returns true if it may have several threads, whose order is a choice.
    [[nodiscard]] virtual bool may_have_threads() const { return false; }
};

// The scenario with the faults of a branch, run in this process. Copies it.
std::unique_ptr<Subject> scenario_subject(const Scenario& scenario);

// A program that has its world in its own process.
struct ExploredProgram {
    std::vector<std::string> command{};  // not empty
    std::string libraries{};  // the folder that is searched first for its libraries; "": as it is
    bool forks = true;        // branches are forks of it as far as that can be, not started anew
};
std::unique_ptr<Subject> program_subject(ExploredProgram program);

}  // namespace scenarios
