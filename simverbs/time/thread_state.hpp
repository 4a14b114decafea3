// What a look at a thread outside the library found.
#pragma once

#include <cstdint>

namespace simverbs {

enum class ThreadState : std::uint8_t {
    kRuns,
    kAsleep,         // without a time limit
    kAsleepForTime,  // with one
    kSpins,          // has burnt more than a limit of processor time, perhaps looking at memory
    kEnded,
};

}  // namespace simverbs
