// The processors on which threads of this process run, where they hand over to each other.
//
// The kernel wakes a thread on an idle processor, if there is one, which takes 15 to 40 us where
// processors are virtual. On the processor of the thread that wakes it, which then sleeps itself,
// it takes 2 to 4 us. So a thread is confined to that processor just before it is woken, and runs
// anywhere again as soon as it is awake.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace simverbs {

// Thread-safe.
class Processors {
  public:
    Processors();

    // How many the process may use.
    [[nodiscard]] unsigned count() const { return count_; }
    // Returns true if a thread, 0: the calling one, may use all of them: nobody has chosen some for
    // it.
    [[nodiscard]] bool are_all_allowed(pid_t thread) const;
    // Confines a thread to the one of the calling thread. Returns false, and changes nothing, if
    // the thread may not use all of them.
    [[nodiscard]] bool confine_to_this_one(pid_t thread) const;
    // Lets a thread, 0: the calling one, use all of them.
    void allow_all(pid_t thread) const;

  private:
    cpu_set_t all_{};
    unsigned count_ = 1;
};

}  // namespace simverbs
