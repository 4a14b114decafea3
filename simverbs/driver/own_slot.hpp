// The calling thread's place in the memory that a client of a served world shares with the server.
#pragma once

#include <chrono>
#include <cstdint>

#include <sched.h>

#include "simverbs/protocol/client_area.hpp"

namespace simverbs::driver {

class ServedChannel;

struct OwnSlot {
    const ServedChannel* channel = nullptr;
    std::uint32_t index = 0;
    int posts_in_a_row = 0;   // since the thread waited or asked for anything
    std::uint32_t polls = 0;  // that found nothing
    int looks = 0;            // polls without a yield that are left after news
    bool has_answered = false;
};
extern constinit thread_local OwnSlot t_slot;

inline void set_state(ActorSlot& slot, ActorWord word) {
    slot.state.store(static_cast<std::uint32_t>(word), std::memory_order_release);
}

// For the slot of the calling thread.
inline void note_processor(ActorSlot& slot) {
    slot.processor.store(static_cast<std::uint32_t>(sched_getcpu()) + 1, std::memory_order_relaxed);
}

// While waiting for the server: looks before the first yield; yields before a look whether it
// lives.
constexpr int kSpinsBeforeYield = 100;
constexpr int kYieldsPerCheck = 1024;
constexpr std::chrono::milliseconds kAtOnce{0};

}  // namespace simverbs::driver
