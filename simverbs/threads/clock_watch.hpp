// Detects that a thread which uses verbs may have decided by the clock of the machine what it does
// next, or has slept for a time: such a run need not repeat itself (DESIGN section 4).
//
// A clock that is read twice (how long did it take?) decides nothing. One does that is read between
// a poll that found nothing and the next request, with no completion in between, as a time limit
// is; and one that is read again and again, as in "for a second".
#pragma once

#include <cstdint>
#include <utility>

namespace simverbs {

class ClockWatch {
  public:
    // A poll found nothing, as of so many deliveries.
    void polled_nothing(std::uint64_t deliveries) {
        ++calls_;
        empty_as_of_ = deliveries;
        has_polled_ = true;
    }
    // The thread posts or commands something. True: perhaps because of the clock.
    bool acts(std::uint64_t deliveries) {
        ++calls_;
        const bool by_time_limit = has_polled_ && read_since_poll_ && empty_as_of_ == deliveries;
        has_polled_ = read_since_poll_ = false;
        return by_time_limit || instants_ >= kMeasures;
    }
    // The program reads a clock.
    void read() {
        if (is_inside || calls_ == 0) {
            return;
        }
        read_since_poll_ = has_polled_;
        if (read_at_ != calls_) {
            read_at_ = calls_;
            ++instants_;
        }
    }

    // The program sleeps for a time, by a call of libc.
    void sleeps() { has_slept_ = has_slept_ || (!is_inside && calls_ > 0); }
    // Returns true if it has done so since the last call of this.
    bool take_sleep() { return std::exchange(has_slept_, false); }

    bool is_inside = false;  // the library reads, not the program

  private:
    static constexpr std::uint32_t kMeasures = 3;

    std::uint64_t calls_ = 0;
    std::uint64_t empty_as_of_ = 0;
    std::uint64_t read_at_ = 0;
    std::uint32_t instants_ = 0;  // calls after which it was read
    bool has_polled_ = false;     // nothing, and has done nothing since
    bool read_since_poll_ = false;
    bool has_slept_ = false;
};

extern constinit thread_local ClockWatch t_clock_watch;

}  // namespace simverbs
