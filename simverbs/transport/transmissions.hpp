// How often each PSN was sent: packets of one direction go in runs of ascending PSNs, and a new run
// begins where a sender goes back. Records and faults name a packet by it; no engine acts on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simverbs/model/psn.hpp"

namespace simverbs {

class Transmissions {
  public:
    // Nothing was sent; `first` is the PSN that begins.
    void start(Psn first);

    // The number of the transmission of `psn` that would come now, from 1.
    [[nodiscard]] std::uint16_t next(Psn psn) const {
        return distance(highest_, psn) >= 0 ? std::uint16_t{1} : count(psn);
    }

    // So many PSNs from `psn` on were sent. Where PSNs were passed over that never were, they
    // count, too: an acknowledgment is one of all before it.
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
    // A sender that goes back and forth without end is counted from the last so many runs.
    static constexpr std::size_t kMostRuns = 1024;
    // Nobody goes back further: PSNs come again after four times as many.
    static constexpr std::uint32_t kFurthest = Psn::kModulus / 4;

    [[nodiscard]] std::uint16_t count(Psn psn) const;
    void go_to(Psn psn);

    // PSNs before this one are not sent again.
    [[nodiscard]] Psn oldest() const { return highest_ + (Psn::kModulus - kFurthest); }
    void forget_oldest() {
        if (distance(begin_, oldest()) > 0) {
            begin_ = oldest();
        }
        while (!runs_.empty() && distance(runs_.front().end, oldest()) > 0) {
            runs_.erase(runs_.begin());
        }
    }

    Psn begin_{0};  // of the run that goes on
    Psn end_{0};
    Psn highest_{0};         // one past the highest that was sent
    std::vector<Run> runs_;  // before it, oldest first
};

}  // namespace simverbs
