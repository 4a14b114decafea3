// The exit statuses of all commands. `run`, `on` and `exec` also end with the status of a
// program.
#pragma once

#include <string>
#include <string_view>

namespace simverbs::cli {

inline constexpr int kPassed = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kTimedOut = 124;     // as timeout(1)
inline constexpr int kNotExecuted = 126;  // as env(1) and a shell
inline constexpr int kNotFound = 127;     // likewise
inline constexpr int kSignalled = 128;    // and the number of the signal, as a shell

// The table of them, for --help.
std::string describe_exit_statuses();

// Prints "simverbs: WHAT" on stderr; returns `status`.
int complain(std::string_view what, int status);

}  // namespace simverbs::cli
