// Confines a process to system calls whose effects a checkpoint takes back (checkpoint.hpp).
//
// Every other call raises SIGSYS instead (seccomp(2), SECCOMP_RET_TRAP). Its handler may make some
// of them all the same (machine_calls.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include <linux/filter.h>

namespace simverbs::driver {

// Descriptors from this number on are the confined process's own; the others are its program's.
inline constexpr int kFirstOwnDescriptor = 512;

// Names descriptors that confined code may use besides those of standard output.
struct ConfinedDescriptors {
    int reports = -1;  // it is written to
    int output = -1;   // it is cut off
};

// Holds the calls that this process may make.
class ConfinedCalls {
  public:
    explicit ConfinedCalls(const ConfinedDescriptors& descriptors);

    // Confines this process, and all that it starts, for ever. Takes no memory. Returns false if
    // the system cannot.
    [[nodiscard]] bool confine();

  private:
    std::vector<sock_filter> instructions_;
};

}  // namespace simverbs::driver
