// Waits for the end of a child process within a limit.
#pragma once

#include <chrono>

#include <sys/types.h>

namespace simverbs::driver {

class ChildEnd {
  public:
    explicit ChildEnd(pid_t child);
    ~ChildEnd();
    ChildEnd(const ChildEnd&) = delete;
    ChildEnd& operator=(const ChildEnd&) = delete;

    // False: the kernel has no descriptors of processes (Linux 5.3), so nobody can wait for a time.
    [[nodiscard]] bool can_wait() const { return descriptor_ >= 0; }
    // Returns false if the time is over before the process ends. Signals wait meanwhile.
    [[nodiscard]] bool comes_within(std::chrono::milliseconds limit) const;
    // Returns how it has ended, as waitpid(2) has it. Waits for that.
    [[nodiscard]] int status() const;

  private:
    pid_t child_;
    int descriptor_;
};

}  // namespace simverbs::driver
