// Keeps virtual time at the pace of the wall clock while a thread sleeps with a time limit, or,
// under the free schedule, while an actor runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "fabric/core/sim_time.hpp"

namespace simverbs {

class Pace {
  public:
    // Returns true if the next event may run: it is due no later after the start of the walk than
    // the wall clock has advanced since then. The wall clock thus only delays events. The first
    // call starts the walk.
    bool allows(std::optional<fabric::SimTime> next, fabric::SimTime now, std::int64_t wall_ns) {
        return !next || *next <= reaches(now, wall_ns);
    }
    // The latest time at which an event may run. The first call starts the walk.
    fabric::SimTime reaches(fabric::SimTime now, std::int64_t wall_ns) {
        if (!walks_) {
            walks_ = true;
            began_ = now;
            wall_began_ns_ = wall_ns;
        }
        return began_ + std::chrono::nanoseconds(wall_ns - wall_began_ns_);
    }
    // Ends the walk: time has jumped, or no event was pending.
    void stop() { walks_ = false; }

  private:
    bool walks_ = false;
    fabric::SimTime began_{};
    std::int64_t wall_began_ns_ = 0;
};

}  // namespace simverbs
