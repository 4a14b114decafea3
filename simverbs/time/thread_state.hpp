// The state of a thread outside the library.
#pragma once

#include <cstdint>

namespace simverbs {

enum class ThreadState : std::uint8_t {
    kRuns,
    kAsleep,         // without a time limit
    kAsleepForTime,  // with one
    kSpins,          // has used more processor time than a limit; it may be polling memory
    kEnded,
};

}  // namespace simverbs
