// Polls that end while time stands, though they have found nothing: a thread that runs may spin on
// a lock that a thread holds while it polls.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace simverbs {

class EarlyPolls {
  public:
    // Returns true if all polls are to end now. `busy`: how long a thread has run; of several the
    // one that has run for longest. They end ever more rarely until time moves or that thread
    // waits: it may compute.
    bool are_due(std::chrono::nanoseconds busy) {
        if (busy < std::exchange(busy_, busy)) {
            time_moved();
        }
        if (busy < std::max(next_, kFirst)) {
            return false;
        }
        step_ = std::clamp(step_ * 2, kFirst, kLast);
        next_ = busy + step_;
        return true;
    }
    // How much longer it has to run until they are due.
    [[nodiscard]] std::chrono::nanoseconds due_in() const {
        return std::max(std::max(next_, kFirst) - busy_, std::chrono::nanoseconds::zero());
    }
    void time_moved() { step_ = next_ = std::chrono::nanoseconds::zero(); }

  private:
    static constexpr std::chrono::nanoseconds kFirst = std::chrono::milliseconds(1);
    static constexpr std::chrono::nanoseconds kLast = std::chrono::milliseconds(16);

    std::chrono::nanoseconds busy_{};
    std::chrono::nanoseconds step_{};
    std::chrono::nanoseconds next_{};
};

}  // namespace simverbs
