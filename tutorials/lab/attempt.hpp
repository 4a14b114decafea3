// A student's program: compiled, run in a process of its own with a trace and a time limit, and
// stopped when it hangs. It runs with the rights of whoever checks it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tutorials/lab/ending.hpp"
#include "tutorials/lab/rubric.hpp"

namespace simverbs::lab {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Where things lie, built or installed.
struct Toolbox {
    std::string tutorials;               // lab.h and lab.py
    std::vector<std::string> headers;    // of simverbs
    std::vector<std::string> libraries;  // libsimverbs.so and libibverbs.so.1
    // The limit of a run, instead of the rubric's; 0: the rubric's.
    std::chrono::milliseconds time_limit{0};
    // Becomes readable when no run is wanted any more, and stays so; -1: never.
    int interruption = -1;
};

struct Command {
    std::vector<std::string> words;
    Environment environment;  // over that of this process, whose own SIMVERBS_* are left out
    std::string folder;       // to run in; "": as this process
    std::chrono::milliseconds limit{60'000};
    int interruption = -1;  // as in a Toolbox
};

// Limits, in bytes, what is kept of each of the two outputs; the rest is read and thrown away.
inline constexpr std::size_t kMostOutput = std::size_t{1} << 20;

struct Finished {
    std::string output;
    std::string errors;
    Ending ending;
};

// Runs it to its end. A program that says the world goes nowhere, or uses up its time, is asked for
// a report (SIGUSR2, where it takes that), then told to say where it is and to end (SIGABRT), and
// killed if it does not. Throws std::system_error when nothing can be started.
Finished run(const Command& command);

// Returns the command line of the C compiler; $CC or cc. lab_ending.c is compiled with the answer.
std::vector<std::string> compiler_words(const Toolbox& toolbox, const Rubric& rubric,
                                        const std::string& source, const std::string& program);

// Files that a program leaves behind.
struct ProgramFiles {
    std::string trace;
    std::string notes;   // where it was as it ended
    std::string digest;  // of its run, and whether the run would repeat itself
};

// The program's variables: its world, its files, its libraries. What Python prints leaves at once.
Environment program_environment(const Toolbox& toolbox, const Rubric& rubric,
                                const ProgramFiles& files);

}  // namespace simverbs::lab
