// How RoCE v2 reacts to congestion: DCQCN (Zhu et al., SIGCOMM 2015), section 5 and its table of
// parameters. The switch's part is in fabric/net/ethernet_queueing.hpp.
#pragma once

#include <cstdint>

#include "fabric/core/sim_time.hpp"

namespace simverbs {

struct CongestionRule {
    // Receiver: one notification (CNP, IBA A17.9.3) a queue pair in this time.
    fabric::SimDuration notification_gap;
    // Sender: alpha, the share of marked time, falls by 1/2^alpha_shift in this time.
    fabric::SimDuration alpha_period;
    unsigned alpha_shift;
    // The rate rises after each such time and after so many bytes: half way back to where it was
    // for the first steps, then that target rises too, fast when both clocks are past these steps.
    fabric::SimDuration increase_period;
    std::uint64_t increase_bytes;
    std::uint32_t recovery_steps;
    // Per mille of the line rate: 40 Mb/s and 400 Mb/s of 40 Gb/s.
    std::uint64_t additive_per_mille;
    std::uint64_t hyper_per_mille;
    std::uint64_t least_per_mille;  // the rate falls no lower
};

inline constexpr CongestionRule kDcqcn = {
    .notification_gap = fabric::SimDuration(50'000'000),
    .alpha_period = fabric::SimDuration(55'000'000),
    .alpha_shift = 8,
    .increase_period = fabric::SimDuration(55'000'000),
    .increase_bytes = 10'000'000,
    .recovery_steps = 5,
    .additive_per_mille = 1,
    .hyper_per_mille = 10,
    .least_per_mille = 1,
};

}  // namespace simverbs
