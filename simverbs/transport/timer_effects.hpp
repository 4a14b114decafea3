// The timers of a protocol engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/core/sim_time.hpp"

namespace simverbs {

enum class EngineTimer : std::uint8_t {
    kAcknowledge,  // requester: the oldest unacknowledged packet got no answer
    kRnr,          // requester: the responder asked to wait
    kPacing,       // responder: the transmitter has drained, more of a READ response may go
    kTransmitted,  // requester without acknowledgments: what was handed over has left the port
    kRate,         // requester: a packet has had its time at the rate that congestion leaves
    kAlpha,        // the share of congested time falls
    kIncrease,     // the rate rises
};
inline constexpr std::size_t kEngineTimers = 7;

class TimerEffects {
  public:
    TimerEffects(const TimerEffects&) = delete;
    TimerEffects& operator=(const TimerEffects&) = delete;

    virtual void arm(EngineTimer timer, fabric::SimDuration after) = 0;
    [[nodiscard]] virtual bool armed(EngineTimer timer) const = 0;
    virtual void disarm(EngineTimer timer) = 0;
    // Arms a timer for the time at which the port's transmitter has sent all it was given, and not
    // before `at_least` from now.
    virtual void arm_when_transmitter_free(EngineTimer timer, fabric::SimDuration at_least) = 0;

  protected:
    TimerEffects() = default;
    ~TimerEffects() = default;
};

}  // namespace simverbs
