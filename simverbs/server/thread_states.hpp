// The states of the threads of a process, as the kernel says (proc(5), /proc/PID/task/TID/stat).
#pragma once

#include <string_view>

#include <sys/types.h>

namespace simverbs {

// Stopped by a signal or a debugger, or at their end.
inline constexpr std::string_view kStoppedStates = "TtZX";
// These, and those that wait for what may never come.
inline constexpr std::string_view kSleepingStates = "STtZX";

// Returns true if the state of every thread is one of these letters. So it is of a process that is
// gone.
bool all_threads_are(std::string_view states, pid_t process);

}  // namespace simverbs
