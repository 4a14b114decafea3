// The coded times of communication management: 4.096 us x 2^n, where n has five bits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "fabric/core/sim_time.hpp"

namespace simverbs::cm {

inline constexpr std::uint8_t kLongestTimeCode = 31;

// Code 0 is 4.096 us, unlike in a queue pair's ACK timeout. A code above 31, which no message can
// carry, counts as 31.
constexpr fabric::SimDuration coded_time(std::uint8_t code) {
    return fabric::SimDuration(std::chrono::nanoseconds(4096)) *
           (std::int64_t{1} << std::min(code, kLongestTimeCode));
}
static_assert(coded_time(20) == std::chrono::nanoseconds(4'294'967'296));

// Returns the code of an ACK timeout that covers the round trip and the delay at the remote CA. A
// code plus one is twice the time; so the greater of the two codes is taken, plus one only where
// the other time is at least half as long (Linux cm_ack_timeout).
constexpr std::uint8_t ack_timeout_code(std::uint8_t ca_ack_delay, std::uint8_t packet_life_time) {
    const int round_trip = packet_life_time + 1;
    const int code = round_trip >= ca_ack_delay
                         ? round_trip + (ca_ack_delay >= round_trip - 1 ? 1 : 0)
                         : ca_ack_delay + (round_trip >= ca_ack_delay - 1 ? 1 : 0);
    return static_cast<std::uint8_t>(std::min<int>(kLongestTimeCode, code));
}

// Returns the code for the round trip alone, before the delay at the remote CA is known.
constexpr std::uint8_t ack_timeout_code(std::uint8_t packet_life_time) {
    return static_cast<std::uint8_t>(std::min<int>(kLongestTimeCode, packet_life_time + 1));
}

}  // namespace simverbs::cm
