// Simulated time: integer picoseconds, so that one bit at 800 Gb/s (1.25 ps) does not round to zero
// per byte and no floating point can make two runs differ. An int64 holds 106 days.
#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>
#include <string>

namespace fabric {

using SimDuration = std::chrono::duration<std::int64_t, std::pico>;

// A clock nobody can read from the wall: `now()` belongs to the EventLoop, never to a global.
struct SimClock {
    // NOLINTBEGIN(readability-identifier-naming): the names std::chrono asks of a clock
    using rep = SimDuration::rep;
    using period = SimDuration::period;
    using duration = SimDuration;
    using time_point = std::chrono::time_point<SimClock>;
    static constexpr bool is_steady = true;
    // NOLINTEND(readability-identifier-naming)
};
using SimTime = SimClock::time_point;

// The instant at which every simulation starts.
inline constexpr SimTime kSimStart{};

constexpr std::int64_t to_picoseconds(SimTime time) {
    return time.time_since_epoch().count();
}

// Exact, in the largest unit that leaves at most three digits before the point: "12.5 ns", "0 ps".
std::string to_string(SimDuration duration);
std::string to_string(SimTime time);

inline namespace literals {
constexpr SimDuration operator""_ps(unsigned long long count) {
    return SimDuration(static_cast<std::int64_t>(count));
}
constexpr SimDuration operator""_ns(unsigned long long count) {
    return operator""_ps(count * 1000);
}
constexpr SimDuration operator""_us(unsigned long long count) {
    return operator""_ns(count * 1000);
}
constexpr SimDuration operator""_ms(unsigned long long count) {
    return operator""_us(count * 1000);
}
constexpr SimDuration operator""_s(unsigned long long count) {
    return operator""_ms(count * 1000);
}
}  // namespace literals

}  // namespace fabric
