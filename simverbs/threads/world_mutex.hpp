// The lock of a world. It is held for about as long as a step takes, so a thread that wants it
// looks a few times before it sleeps in the kernel.
//
// Every empty poll takes and releases it. That is two atomic operations here; a std::mutex adds two
// calls into another library.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "simverbs/threads/wake_word.hpp"

namespace simverbs {

class WorldMutex {
  public:
    void lock() {
        if (!try_lock()) {
            wait_for_lock();
        }
    }
    bool try_lock() {
        std::uint32_t expected = kFree;
        return word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    // Wakes those who were let go on meanwhile, now that they find the lock free.
    void unlock() {
        if (count_ != 0) [[unlikely]] {
            unlock_and_wake();
        } else if (word_.exchange(kFree, std::memory_order_release) == kWanted) [[unlikely]] {
            wake_waiting();
        }
    }
    // With the lock held. Lets the owner of the word go on.
    void release(WakeWord& word) {
        if (!word.release()) {
            return;
        }
        if (count_ == kMost) {
            word.wake();
        } else {
            words_[count_++] = &word;
        }
    }

  private:
    static constexpr std::uint32_t kFree = 0;
    static constexpr std::uint32_t kHeld = 1;
    static constexpr std::uint32_t kWanted = 2;  // held, and another thread may sleep for it
    static constexpr std::size_t kMost = 8;

    [[gnu::cold]] void wait_for_lock();
    [[gnu::cold]] void unlock_and_wake();
    [[gnu::cold]] void wake_waiting();

    std::atomic<std::uint32_t> word_{kFree};
    std::size_t count_ = 0;
    std::array<const WakeWord*, kMost> words_{};  // whose owners sleep
};

}  // namespace simverbs
