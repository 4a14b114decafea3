// Runs branches in processes of their own, several at once, until the time for them is over.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/engine/process_pool.hpp"
#include "scenarios/explore/subject.hpp"

namespace scenarios {

class BranchRunner {
  public:
    using Clock = std::chrono::steady_clock;

    // `jobs` from 1 on; `budget`: the wall time from now, after which no branch is begun; the
    // onlooker is told of branches.
    BranchRunner(const Subject& subject, unsigned jobs, std::chrono::milliseconds budget,
                 Onlooker onlooker);

    // Runs the subject without faults. Sets the limit of each branch to `limit`, or by the time
    // that this takes. Returns nothing where the exploration was stopped meanwhile.
    std::optional<BranchResult> run_usual(std::optional<std::chrono::milliseconds> limit);

    // The wall time of one branch, after which it hangs; and of one that runs alone to make sure.
    [[nodiscard]] std::chrono::milliseconds limit() const { return limit_; }
    [[nodiscard]] std::chrono::milliseconds patient_limit() const { return limit_ * kTimesAgain; }

    // Runs branches. Returns what came of each in their order, which does not depend on the number
    // of processes: nothing of those for which there was no time.
    std::vector<std::optional<BranchResult>> run_all(const std::vector<Branch>& branches);

    // Runs one branch while nothing else runs. Returns nothing where the exploration was stopped
    // meanwhile.
    std::optional<BranchResult> run_alone(const Branch& branch);

    // Runs a branch that hangs alone, and with several times the limit: on a busy machine a branch
    // may take longer. Returns what came of it if it hangs no more.
    std::optional<BranchResult> run_patiently(Branch branch);

    // The onlooker wanted no more.
    [[nodiscard]] bool is_stopped() const { return stopped_; }
    [[nodiscard]] bool is_over() const { return stopped_ || Clock::now() >= end_; }
    // Leaves the branches that follow `percent` of the time that is left. use_all() ends that.
    void use_share(unsigned percent);
    void use_all() { end_ = end_of_budget_; }

  private:
    static constexpr int kTimesAgain = 3;

    struct Piece {
        std::size_t begin, end;
        [[nodiscard]] std::size_t size() const { return end - begin; }
    };

    [[nodiscard]] bool goes_on() const;
    std::optional<BranchResult> run_in_process(const Branch& branch,
                                               std::chrono::milliseconds limit);
    [[nodiscard]] std::size_t size_of_piece(std::size_t branches) const;
    [[nodiscard]] std::string run_piece(const std::vector<Branch>& branches, Piece piece) const;
    void take(const ProcessPool::Done& done, Piece piece,
              std::vector<std::optional<BranchResult>>& results);

    const Subject& subject_;
    unsigned jobs_;
    Onlooker onlooker_;
    Clock::time_point end_of_budget_;
    Clock::time_point end_;
    std::chrono::milliseconds limit_{};
    std::chrono::milliseconds limit_of_process_{};
    Stage stage_{};
    bool stopped_ = false;
};

}  // namespace scenarios
