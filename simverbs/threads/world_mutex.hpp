// The lock of a world. It is held for about as long as a step takes, so a thread that wants it
// looks a few times before it sleeps in the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

#include "simverbs/threads/wake_word.hpp"

namespace simverbs {

class WorldMutex {
  public:
    void lock() {
        for (int i = 0; i < kLooks; ++i) {
            if (mutex_.try_lock()) {
                return;
            }
            relax();
        }
        mutex_.lock();
    }
    bool try_lock() { return mutex_.try_lock(); }
    // Wakes those who were let go on meanwhile, now that they find the lock free.
    void unlock() {
        if (count_ == 0) [[likely]] {
            mutex_.unlock();
            return;
        }
        const std::size_t count = std::exchange(count_, 0);
        const std::array<const WakeWord*, kMost> words = words_;
        mutex_.unlock();
        for (std::size_t i = 0; i < count; ++i) {
            words[i]->wake();
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
    static constexpr int kLooks = 40;
    static constexpr std::size_t kMost = 8;

    std::mutex mutex_;
    std::array<const WakeWord*, kMost> words_{};  // whose owners sleep
    std::size_t count_ = 0;
};

}  // namespace simverbs
