// Where numbers begin, and in which order keys are given out.
//
// Two programs that do the same on two devices are given different numbers: one that takes its own
// number or key for its peer's would otherwise work here, and fail on hardware.
//
// A program that takes one key for another, or forgets that numbers wrap, is found out sooner where
// they are not what it happens to expect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace simverbs {

struct Numbering {
    std::uint32_t first_psn = 0;  // on the wire, of what the program calls PSN 0; below 2^24
    std::uint32_t first_qpn = 1;  // low 16 bits of a context's first one, on the first device
    std::optional<std::uint64_t> key_seed;  // keys in a random order; none: rising
};

// Numbers of each device begin so much higher than those of the device before.
inline constexpr std::uint32_t kNumbersBetweenDevices = 0x100;

// The low 16 bits of the first number of each context of a device (0: the first of the world),
// where they begin with `first` on the first device.
constexpr std::uint32_t first_number(std::uint32_t first, std::size_t device) {
    return static_cast<std::uint32_t>((first + device * kNumbersBetweenDevices) & 0xFFFF);
}

}  // namespace simverbs
