// Ends child processes at a limit of wall time.
#pragma once

#include <chrono>

#include <sys/types.h>

namespace fabric {

inline constexpr std::chrono::milliseconds kNoTimeLimit = std::chrono::milliseconds::max();

// Waits until the process has ended. At the limit sends SIGUSR2, by which a program with a world
// says what its queue pairs wait for, and kills it soon after. Returns true if it was killed. Its
// status is left for waitpid(2). A kernel without pidfd_open(2) knows no limit.
bool end_by(pid_t process, std::chrono::milliseconds limit);

}  // namespace fabric
