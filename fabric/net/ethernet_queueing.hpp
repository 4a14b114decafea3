// How the ports of Ethernet links queue: when a switch drops, marks or pauses. Each priority has a
// queue of its own, and they take turns of a frame.
#pragma once

#include <cstdint>

#include "fabric/core/random.hpp"

namespace fabric {

// Priorities of IEEE 802.1Q; a frame's is the low three bits of its service level.
inline constexpr std::uint8_t kPriorities = 8;

struct EthernetQueueing {
    // A frame that would make a queue of a switch longer is dropped, unless its priority is paused
    // instead. 0: no end.
    std::uint32_t queue_bytes = 1U << 20;

    // Marks frames that can be marked (ECN) when they join a queue of a switch: none up to the
    // first length, all from the second on, in between up to the probability (DCQCN, SIGCOMM 2015,
    // figure 5). 0 as the second: marks nothing.
    std::uint32_t mark_from_bytes = 40'000;
    std::uint32_t mark_all_bytes = 200'000;
    Ratio mark_probability{1, 10};

    // Bit n: priority n is paused instead of dropped (IEEE 802.1Qbb). A switch that holds more than
    // `pause_bytes` of a priority from one port pauses who sends there, until it holds no more than
    // `resume_bytes`. What is under way then finds room.
    std::uint8_t paused_priorities = 0;
    std::uint32_t pause_bytes = 64 * 1024;
    std::uint32_t resume_bytes = 32 * 1024;

    friend bool operator==(const EthernetQueueing&, const EthernetQueueing&) = default;
};

}  // namespace fabric
