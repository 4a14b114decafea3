#include "simverbs/threads/world_mutex.hpp"

#include <utility>

#include "simverbs/threads/futex.hpp"

namespace simverbs {
namespace {

constexpr int kLooks = 40;

}  // namespace

void WorldMutex::wait_for_lock() {
    for (int i = 0; i < kLooks; ++i) {
        relax();
        if (try_lock()) {
            return;
        }
    }
    // Whoever has slept takes the lock as wanted: others may sleep still.
    while (word_.exchange(kWanted, std::memory_order_acquire) != kFree) {
        futex_wait(word_, kWanted);
    }
}

void WorldMutex::wake_waiting() {
    futex_wake(word_, 1);
}

void WorldMutex::unlock_and_wake() {
    const std::size_t count = std::exchange(count_, 0);
    const std::array<const WakeWord*, kMost> words = words_;
    unlock();
    for (std::size_t i = 0; i < count; ++i) {
        words[i]->wake();
    }
}

}  // namespace simverbs
