// How the ports of Ethernet links queue: when a switch drops, marks or pauses. Each priority has a
// queue of its own, and they take turns of a frame.
#pragma once

#include <cstdint>

#include "fabric/core/random.hpp"
#include "fabric/core/rate.hpp"

namespace fabric {

// Priorities of IEEE 802.1Q; a frame's is the low three bits of its service level.
inline constexpr std::uint8_t kPriorities = 8;

// Lengths are of the queues of a 100 Gb/s port, and in proportion at any other rate.
//
// Marks are those of the public simulator of HPCC (Li et al., SIGCOMM 2019), which compares itself
// with DCQCN: 100 and 400 kB for each 25 Gb/s, up to one in five.
struct EthernetQueueing {
    // A frame that would make a queue of a switch longer is dropped, unless its priority is paused
    // instead. 0: no end.
    std::uint32_t queue_bytes = 1U << 20;

    // Marks frames that can be marked (ECN) when they leave a queue of a switch, by what waits
    // behind them, so that a mark is not late by the queue: none up to the first length, all from
    // the second on, in between up to the probability (DCQCN, SIGCOMM 2015, figure 5). 0 as the
    // second: marks nothing.
    std::uint32_t mark_from_bytes = 400'000;
    std::uint32_t mark_all_bytes = 1'600'000;
    Ratio mark_probability{1, 5};

    // Bit n: priority n is paused instead of dropped (IEEE 802.1Qbb). A switch that holds more than
    // `pause_bytes` of a priority from one port pauses who sends there, until it holds no more than
    // `resume_bytes`. What is under way then finds room. Two such senders are marked long before
    // they are paused, as DCQCN wants it (section 4 there).
    std::uint8_t paused_priorities = 0xff;
    std::uint32_t pause_bytes = 1U << 20;
    std::uint32_t resume_bytes = (1U << 20) - 16 * 1024;

    // With lengths for a port of this rate.
    [[nodiscard]] EthernetQueueing at(Rate rate) const;

    friend bool operator==(const EthernetQueueing&, const EthernetQueueing&) = default;
};

}  // namespace fabric
