// How the time of a world advances, as its user chose.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "simverbs/time/schedule.hpp"

namespace simverbs {

struct TimeOptions {
    Schedule schedule = Schedule::kCanonical;
    // Serial: number of the order in which actors continue; nothing: that of the actors.
    std::optional<std::uint64_t> order{};
    // CPU time outside the library after which an actor counts as waiting; 0: never.
    std::chrono::milliseconds spin_limit{500};
    // A thread of the library moves time while no actor does; false: only once there are several
    // actors. Embedded worlds alone.
    bool helper_thread = true;
    bool warn = false;  // say on stderr when the world goes nowhere
};

}  // namespace simverbs
