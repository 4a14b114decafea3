// Counts how often each PSN was sent. A sender transmits runs of ascending PSNs and starts a new
// run when it goes back for a retransmission. The count names packets in traces and faults;
// protocol engines do not act on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simverbs/model/psn.hpp"

namespace simverbs {

class Transmissions {
  public:
    // Forgets everything; the first packet will have PSN `first`.
    void start(Psn first);

    // The number that the next transmission of `psn` has, from 1.
    [[nodiscard]] std::uint16_t next(Psn psn) const {
        return distance(highest_, psn) >= 0 ? std::uint16_t{1} : count(psn);
    }

    // Records that `packets` PSNs from `psn` on were sent. New PSNs that were skipped before `psn`
    // count as sent, because an acknowledgment covers all PSNs before it.
    void add(Psn psn, std::uint32_t packets) {
        if (psn != end_) {
            go_to(psn);
        }
        end_ = psn + packets;
        if (distance(highest_, end_) > 0) {
            highest_ = end_;
            forget_oldest();
        }
    }

  private:
    struct Run {
        Psn begin;
        Psn end;
        std::uint32_t times;  // in a row
    };
    // Bounds the memory of a sender that retransmits without end; older runs are forgotten.
    static constexpr std::size_t kMostRuns = 1024;
    // The distance over which PSNs are counted; they wrap after four times this.
    static constexpr std::uint32_t kFurthest = Psn::kModulus / 4;

    [[nodiscard]] std::uint16_t count(Psn psn) const;
    void go_to(Psn psn);

    // Runs that end before this PSN are forgotten.
    [[nodiscard]] Psn oldest() const { return highest_ + (Psn::kModulus - kFurthest); }
    void forget_oldest() {
        if (distance(begin_, oldest()) > 0) {
            begin_ = oldest();
        }
        while (!runs_.empty() && distance(runs_.front().end, oldest()) > 0) {
            runs_.erase(runs_.begin());
        }
    }

    Psn begin_{0};  // of the current run
    Psn end_{0};
    Psn highest_{0};         // one past the highest that was sent
    std::vector<Run> runs_;  // earlier runs, oldest first
};

}  // namespace simverbs
