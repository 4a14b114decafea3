// Reads which mistakes the library has named in the output of a program (SIMVERBS_WARN=1).
#pragma once

#include <string>
#include <vector>

#include "simverbs/model/misuse.hpp"

namespace scenarios {

struct Mistake {
    simverbs::Misuse misuse{};
    std::string line{};  // as the library wrote it
};

// Returns them in the order of the output, each once.
std::vector<Mistake> mistakes_in(const std::string& output);

// Says what excuses a program for a mistake in a branch, where it does not make it without faults.
enum class Excuse : std::uint8_t {
    kNone,
    kEnd,      // it ends with another status than 0: the kernel tidies up
    kAny,      // a fault moves completions to where the program does not look any more
    kFailure,  // requests fail: it ends connections and does not care what becomes of their data
};
Excuse excuse_of(simverbs::Misuse misuse);

}  // namespace scenarios
