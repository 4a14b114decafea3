// Tries faults of an explored program in forks of the process: `simverbs explore -- PROGRAM`.
//
// A branch begins where its fault would act. The process forks there, and waits until the child,
// which goes on with the fault, has ended; then it goes on itself, without the fault. So no branch
// repeats what comes before its fault.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/time.h>
#include <sys/types.h>

#include "simverbs/driver/branch_series.hpp"
#include "simverbs/faults/branch_points.hpp"
#include "simverbs/hca/event_pipe.hpp"
#include "simverbs/model/branch_report.hpp"
#include "simverbs/threads/conductor.hpp"

namespace simverbs::driver {

class ProcessBranches final : public BranchPoints {
  public:
    // nullptr: nobody explores this process (kBranchesVariable). Both outlive the result.
    static std::unique_ptr<ProcessBranches> make(EventBacklog& events, Conductor& conductor);

    [[nodiscard]] bool acts_here(std::string_view fault, std::uint64_t moment) override;
    // The world ends with the program.
    void report_end(Simulation& simulation) const;

  private:
    // Describes the command that explores this process.
    struct Explorer {
        int reports = -1;
        int output = -1;
        std::chrono::milliseconds limit{};
        pid_t starter = 0;
        std::vector<std::string> inherited{};  // what descriptors refer to
    };
    static const Explorer& explorer();

    ProcessBranches(const Explorer& explorer, EventBacklog& events, Conductor& conductor)
        : explorer_(explorer),
          events_(events),
          conductor_(conductor),
          series_({.reports = explorer.reports, .output = explorer.output}) {}

    // Returns why a child could not go on as this process does; "": it can.
    [[nodiscard]] std::string describe_obstacle();
    [[nodiscard]] std::string describe_foreign_descriptor() const;
    // Each returns true in the child, which goes on with the fault, and false in the parent. The
    // child of a series does so for each fault of the moment, whose calls the parent then skips.
    [[nodiscard]] bool branch_at(std::string_view fault);
    [[nodiscard]] bool fork_at(std::string_view fault);
    [[nodiscard]] std::optional<bool> try_series_at(std::string_view fault);

    void prepare_fork();
    // Returns false, with errno, if it cannot.
    bool continue_in_child();
    [[nodiscard]] bool continue_in_series(std::string_view fault, pid_t parent);
    [[nodiscard]] bool acts_in_series(std::string_view fault);
    void await(pid_t child, std::string_view fault);
    // The output of a child goes out of the file again, so that each branch finds there what comes
    // before it.
    void remove_output() const;
    void report(BranchReport report, std::string_view fault, std::string_view text) const;

    const Explorer& explorer_;
    EventBacklog& events_;
    Conductor& conductor_;
    // Timers of setitimer(2), which a child does not inherit.
    std::array<itimerval, 3> timers_{};
    std::string obstacle_;  // as of the last moment
    std::optional<std::uint64_t> moment_;
    std::string branch_;       // the fault with which this process goes on; "": no branch
    off_t output_before_ = 0;  // the size of the file before the fork

    BranchSeries series_;
    bool is_in_series_ = false;        // this process is the child of one
    std::uint32_t asked_ = 0;          // calls since its beginning
    std::uint32_t calls_to_skip_ = 0;  // their branches have ended
    bool next_is_alone_ = false;       // its branch has broken a series
};

}  // namespace simverbs::driver
