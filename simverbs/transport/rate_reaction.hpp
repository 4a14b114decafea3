// The sender's part of DCQCN: the rate of one queue pair, cut by each notification and raised again
// by time and by bytes. It has timers only while the rate is limited, and integers throughout.
#pragma once

#include <cstdint>

#include "fabric/core/sim_time.hpp"

#include "simverbs/model/congestion.hpp"
#include "simverbs/transport/timer_effects.hpp"

namespace simverbs {

class RateReaction {
  public:
    explicit RateReaction(TimerEffects& effects) : effects_(effects) {}

    [[nodiscard]] bool limited() const { return rate_bps_ != 0; }
    // bit/s; 0: as the port allows.
    [[nodiscard]] std::uint64_t rate() const { return rate_bps_; }
    // How long `bytes` take at that rate; only while limited.
    [[nodiscard]] fabric::SimDuration time_of(std::uint64_t bytes) const;

    // A notification has come, to a port of this rate.
    void notified(std::uint64_t line_bps);
    void sent(std::uint64_t bytes);
    // One of kAlpha and kIncrease. `idle`: there is nothing to send, and no limit is kept for it.
    void timer_expired(EngineTimer timer, bool idle);
    void reset();

  private:
    static constexpr std::uint64_t kOne = 1U << 16;  // alpha is a fraction of this

    void increase();
    // Since the last cut.
    [[nodiscard]] bool has_risen() const { return time_steps_ != 0 || byte_steps_ != 0; }

    TimerEffects& effects_;
    std::uint64_t line_bps_ = 0;
    std::uint64_t rate_bps_ = 0;
    std::uint64_t target_bps_ = 0;
    std::uint64_t alpha_ = kOne;
    std::uint64_t bytes_ = 0;  // since the last step by bytes
    std::uint32_t time_steps_ = 0;
    std::uint32_t byte_steps_ = 0;
};

}  // namespace simverbs
