// A student's program: compiled, run in a process of its own with a trace and a time limit, and
// stopped when it hangs. It runs with the rights of whoever checks it.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tutorials/lab/judge.hpp"

namespace simverbs::lab {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Where things lie, built or installed.
struct Toolbox {
    std::string tutorials;               // lab.h and lab.py
    std::vector<std::string> headers;    // of simverbs
    std::vector<std::string> libraries;  // libsimverbs.so and libibverbs.so.1
};

struct Command {
    std::vector<std::string> words;
    Environment environment;  // over that of this process, whose own SIMVERBS_* are left out
    std::string folder;       // to run in; "": as this process
    std::chrono::milliseconds limit{60'000};
};

struct Finished {
    std::string output;
    std::string errors;
    Ending ending;
};

// Runs it to its end. A program that says the world goes nowhere, or uses up its time, is asked for
// a report (SIGUSR2) and killed. Throws std::system_error when nothing can be started.
Finished run(const Command& command);

// What the C compiler is to be told; $CC or cc.
std::vector<std::string> compiler_words(const Toolbox& toolbox, const std::string& source,
                                        const std::string& program);

// The program's variables: its world, its trace, its libraries.
Environment program_environment(const Toolbox& toolbox, const Rubric& rubric,
                                const std::string& trace_file);

}  // namespace simverbs::lab
