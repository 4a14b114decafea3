// How the actors of a world take turns.
#pragma once

#include <cstdint>

namespace simverbs {

enum class Schedule : std::uint8_t {
    kCanonical,  // time moves when every actor waits; runs repeat themselves
    kFree,       // an empty poll returns at once; time keeps pace with the wall while anybody runs
    kSerial,     // canonical, and after a step actors go on one at a time
};

}  // namespace simverbs
