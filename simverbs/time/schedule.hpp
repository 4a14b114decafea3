// The schedules: how the actors of a world take turns.
#pragma once

#include <cstdint>

namespace simverbs {

enum class Schedule : std::uint8_t {
    kCanonical,  // time advances when every actor waits; runs are reproducible
    kFree,       // empty polls return at once; time follows the wall clock while an actor runs
    kSerial,     // canonical, and after a step the actors continue one at a time
};

}  // namespace simverbs
