// The progress line of a long command on a terminal, and how it is interrupted.
#pragma once

#include <chrono>
#include <string>

#include "simverbs/cli/end_signals.hpp"

#include "scenarios/engine/process_pool.hpp"

namespace simverbs::cli {

// One line on stderr: "37 of 100 seeds, about 12 s left". Nothing where stderr is no terminal.
class Progress {
  public:
    enum class End { kKnown, kUnknown };
    // `pieces`: of what stages count, in the plural. kUnknown: how many there will be is not known.
    explicit Progress(std::string pieces, End end = End::kKnown);
    // Clears the line.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // An onlooker (process_pool.hpp): false once SIGINT, SIGTERM or SIGHUP has come.
    bool look(const scenarios::Stage& stage);
    // Before anything else is printed.
    void clear();
    // `status`, or that of the signal that has interrupted the command.
    [[nodiscard]] static int status(int status);

  private:
    using Clock = std::chrono::steady_clock;
    [[nodiscard]] std::string line(const scenarios::Stage& stage) const;

    EndSignals signals_;
    std::string pieces_;
    End end_;
    bool is_terminal_;
    bool is_drawn_ = false;
    Clock::time_point begin_ = Clock::now();
    Clock::time_point drawn_{};
};

}  // namespace simverbs::cli
