// The state of a queue pair about congestion on its way, once something was marked.
#pragma once

#include "fabric/core/sim_time.hpp"

#include "simverbs/transport/rate_reaction.hpp"

namespace simverbs {

struct Congestion {
    explicit Congestion(TimerEffects& effects) : reaction(effects) {}

    RateReaction reaction;
    fabric::SimTime next_notification{};  // no earlier
};

}  // namespace simverbs
