// The process between `simverbs lab` and a program that it runs: the program's parent, in a session
// of its own. It ends all that the program leaves behind, daemons too. A program that kills its
// parent ends this process and itself, not the command.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace simverbs::lab {

// A message to the command, shorter than PIPE_BUF: it comes whole.
struct SupervisorReport {
    enum class Kind : std::uint8_t {
        kStarting,    // number: of the process
        kNotStarted,  // number: errno
        kEnded,       // number: as of wait(2); nothing that it started runs any more
    };
    Kind kind = Kind::kEnded;
    int number = 0;
};

struct Supervised {
    const char* folder;  // to run in; nullptr: as this process
    char* const* arguments;
    char* const* variables;
    int output;  // its stdout and stderr
    int errors;
    int stop;     // readable: end all
    int reports;  // where the reports go
    pid_t owner;  // this process ends with it
};

// To be called in a forked child of a process that may have threads: calls only what signal
// handlers may call, too.
[[noreturn]] void supervise(const Supervised& supervised);

}  // namespace simverbs::lab
