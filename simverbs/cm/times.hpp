// The coded times of communication management: 4.096 us x 2^n, where n has five bits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "fabric/core/sim_time.hpp"

namespace simverbs::cm {

inline constexpr std::uint8_t kLongestTimeCode = 31;

// Unlike that of a queue pair's ACK timeout, code 0 is a time like the others (IBA 12.7.22). A
// code above 31, which no message can carry, counts as 31.
constexpr fabric::SimDuration coded_time(std::uint8_t code) {
    return fabric::SimDuration(std::chrono::nanoseconds(4096)) *
           (std::int64_t{1} << std::min(code, kLongestTimeCode));
}
static_assert(coded_time(20) == std::chrono::nanoseconds(4'294'967'296));

// The code of the ACK timeout that covers the way there and back and the delay at the remote CA
// (IBA 12.7.34). A code more is twice the time: the greater of both counts, and one more only where
// the other is at least half of it, as in Linux.
constexpr std::uint8_t ack_timeout_code(std::uint8_t ca_ack_delay, std::uint8_t packet_life_time) {
    const int round_trip = packet_life_time + 1;
    const int code = round_trip >= ca_ack_delay
                         ? round_trip + (ca_ack_delay >= round_trip - 1 ? 1 : 0)
                         : ca_ack_delay + (round_trip >= ca_ack_delay - 1 ? 1 : 0);
    return static_cast<std::uint8_t>(std::min<int>(kLongestTimeCode, code));
}

// The same before the delay at the remote CA is known.
constexpr std::uint8_t ack_timeout_code(std::uint8_t packet_life_time) {
    return static_cast<std::uint8_t>(std::min<int>(kLongestTimeCode, packet_life_time + 1));
}

}  // namespace simverbs::cm
