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
        : explorer_(explorer), events_(events), conductor_(conductor) {}

    // Returns why a child could not go on as this process does; "": it can.
    [[nodiscard]] std::string describe_obstacle();
    [[nodiscard]] std::string describe_foreign_descriptor() const;
    [[nodiscard]] bool fork_at(std::string_view fault);
    // Returns false, with errno, if it cannot.
    bool continue_in_child();
    void await(pid_t child, std::string_view fault, off_t output_before);
    void report(BranchReport report, std::string_view fault, std::string_view text) const;

    const Explorer& explorer_;
    EventBacklog& events_;
    Conductor& conductor_;
    // Timers of setitimer(2), which a child does not inherit.
    std::array<itimerval, 3> timers_{};
    std::string obstacle_;  // as of the last moment
    std::optional<std::uint64_t> moment_;
    std::string branch_;  // the fault with which this process goes on; "": no branch
};

}  // namespace simverbs::driver
