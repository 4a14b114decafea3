// The coded times of a queue pair: RNR NAK timer and local ACK timeout.
//
// Only the codes are here; who waits, for what and how often is the requester's business. A
// device may wait longer than the code says (IBA allows up to four times): see personalities.hpp.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "fabric/core/sim_time.hpp"

namespace simverbs {

inline constexpr std::uint8_t kRnrTimerCodes = 32;
inline constexpr std::uint8_t kAckTimeoutCodes = 32;
inline constexpr std::uint8_t kRnrRetryForever = 7;  // rnr_retry: never give up (IBA 9.7.5.2.8)
inline constexpr std::uint8_t kMaxRetryCount = 7;    // retry_cnt and rnr_retry have three bits

// In units of 10 us, as the specification's table has two decimals of a millisecond (IBA 9.7.5.2.8,
// table 45). Code 0 is the longest.
inline constexpr auto kRnrTimerTensOfMicroseconds = std::to_array<std::uint32_t>({
    65536, 1,    2,    3,     4,     6,     8,     12,    //
    16,    24,   32,   48,    64,    96,    128,   192,   //
    256,   384,  512,  768,   1024,  1536,  2048,  3072,  //
    4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152,
});
static_assert(kRnrTimerTensOfMicroseconds.size() == kRnrTimerCodes);

// The least time a requester waits after an RNR NAK with this code; the code has five bits.
constexpr fabric::SimDuration rnr_timer(std::uint8_t code) {
    return std::chrono::microseconds(10) * kRnrTimerTensOfMicroseconds[code % kRnrTimerCodes];
}

// 4.096 us x 2^code; code 0 waits for ever (IBA 9.7.6.1.3). The code has five bits.
constexpr std::optional<fabric::SimDuration> ack_timeout(std::uint8_t code) {
    if (code % kAckTimeoutCodes == 0) {
        return std::nullopt;
    }
    return fabric::SimDuration(std::chrono::nanoseconds(4096)) *
           (std::int64_t{1} << (code % kAckTimeoutCodes));
}

static_assert(ack_timeout(14) == std::chrono::nanoseconds(67'108'864));

}  // namespace simverbs
