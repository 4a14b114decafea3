// Reads which mistakes the library has named in the output of a program (SIMVERBS_WARN=1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simverbs/model/misuse.hpp"

namespace scenarios {

struct Mistake {
    simverbs::Misuse misuse{};
    std::string line{};  // as the library wrote it
    std::string host{};  // of the program, in a served world

    [[nodiscard]] bool is_as(const Mistake& other) const {
        return misuse == other.misuse && host == other.host;
    }
};

// Returns them in the order of the output, each once. Lines of a served world begin with the host,
// "h0 | ".
std::vector<Mistake> mistakes_in(const std::string& output);

// Says what excuses a program for a mistake in a branch, where it does not make it without faults.
enum class Excuse : std::uint8_t {
    kNone,
    kEnd,      // it ends with another status than 0: the kernel tidies up
    kAny,      // a hint: it may be right, or a fault has moved a completion behind the last poll
    kFailure,  // queue pairs fail: it ends connections, in whatever state they are by now
    kNews,     // queue pairs fail, or an asynchronous event makes a poll return with nothing
};
Excuse excuse_of(simverbs::Misuse misuse);

}  // namespace scenarios
