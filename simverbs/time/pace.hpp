// Virtual time at the pace of the wall's, while somebody sleeps for a time or runs freely.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "fabric/core/sim_time.hpp"

namespace simverbs {

class Pace {
  public:
    // Whether the next event may come: it lies no further from where walking began than the wall
    // has come since. So the wall only ever delays. The first question begins the walk.
    bool allows(std::optional<fabric::SimTime> next, fabric::SimTime now, std::int64_t wall_ns) {
        if (!next) {
            return true;
        }
        if (!walks_) {
            walks_ = true;
            began_ = now;
            wall_began_ns_ = wall_ns;
        }
        return *next - began_ <= std::chrono::nanoseconds(wall_ns - wall_began_ns_);
    }
    // Time has jumped, or no event was left: what the wall has come on since counts no more.
    void stop() { walks_ = false; }

  private:
    bool walks_ = false;
    fabric::SimTime began_{};
    std::int64_t wall_began_ns_ = 0;
};

}  // namespace simverbs
