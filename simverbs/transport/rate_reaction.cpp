#include "simverbs/transport/rate_reaction.hpp"

#include <algorithm>

namespace simverbs {

fabric::SimDuration RateReaction::time_of(std::uint64_t bytes) const {
    constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;
    __extension__ using Wide = unsigned __int128;
    return fabric::SimDuration(
        static_cast<std::int64_t>(Wide{bytes} * 8 * kPicosecondsPerSecond / rate_bps_));
}

void RateReaction::notified(std::uint64_t line_bps) {
    if (!limited()) {
        alpha_ = kOne;
        rate_bps_ = target_bps_ = line_bps;
    }
    line_bps_ = line_bps;
    // Notifications in a row come of one queue: what the flow had before the first of them is what
    // it gets back to. The paper cuts the target each time; NVIDIA's devices
    // (rpg_clamp_tgt_rate 0) and HPCC's simulator (CLAMP_TARGET_RATE 0) do not.
    if (has_risen()) {
        target_bps_ = rate_bps_;
    }
    rate_bps_ = std::max(rate_bps_ - rate_bps_ / (2 * kOne) * alpha_,
                         line_bps_ / 1000 * kDcqcn.least_per_mille);
    alpha_ += (kOne - alpha_) >> kDcqcn.alpha_shift;
    bytes_ = 0;
    time_steps_ = byte_steps_ = 0;
    effects_.arm(EngineTimer::kAlpha, kDcqcn.alpha_period);
    effects_.arm(EngineTimer::kIncrease, kDcqcn.increase_period);
}

void RateReaction::sent(std::uint64_t bytes) {
    bytes_ += bytes;
    while (limited() && bytes_ >= kDcqcn.increase_bytes) {
        bytes_ -= kDcqcn.increase_bytes;
        ++byte_steps_;
        increase();
    }
}

void RateReaction::timer_expired(EngineTimer timer, bool idle) {
    if (!limited()) {
        return;
    }
    if (idle) {
        reset();
        return;
    }
    if (timer == EngineTimer::kAlpha) {
        alpha_ -= alpha_ >> kDcqcn.alpha_shift;
        effects_.arm(EngineTimer::kAlpha, kDcqcn.alpha_period);
        return;
    }
    ++time_steps_;
    increase();
    if (limited()) {
        effects_.arm(EngineTimer::kIncrease, kDcqcn.increase_period);
    }
}

// Halfway to the target, which is where the rate was when it was cut, and later above it.
void RateReaction::increase() {
    const std::uint32_t least = std::min(time_steps_, byte_steps_);
    const std::uint32_t most = std::max(time_steps_, byte_steps_);
    if (least > kDcqcn.recovery_steps) {
        target_bps_ += line_bps_ / 1000 * kDcqcn.hyper_per_mille * (least - kDcqcn.recovery_steps);
    } else if (most > kDcqcn.recovery_steps) {
        target_bps_ += line_bps_ / 1000 * kDcqcn.additive_per_mille;
    }
    target_bps_ = std::min(target_bps_, line_bps_);
    rate_bps_ = (rate_bps_ + target_bps_) / 2;
    if (rate_bps_ >= line_bps_ - line_bps_ / 1000) {
        reset();
    }
}

void RateReaction::reset() {
    rate_bps_ = target_bps_ = 0;
    effects_.disarm(EngineTimer::kAlpha);
    effects_.disarm(EngineTimer::kIncrease);
    effects_.disarm(EngineTimer::kRate);
}

}  // namespace simverbs
