// The lock of a world. It is held for about as long as a step takes, so a thread that wants it
// looks a few times before it sleeps in the kernel.
//
// It is a mutex of the C library because a program may be built with ThreadSanitizer and this
// library without it: ThreadSanitizer then knows of no other kind of lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

#include "simverbs/threads/wake_word.hpp"

namespace simverbs {

class WorldMutex {
  public:
    void lock() {
        for (int i = 0; i < kLooks; ++i) {
            if (!is_held_.load(std::memory_order_relaxed) && try_lock()) {
                return;
            }
            relax();
        }
        mutex_.lock();
        is_held_.store(true, std::memory_order_relaxed);
    }
    bool try_lock() {
        const bool locked = mutex_.try_lock();
        if (locked) {
            is_held_.store(true, std::memory_order_relaxed);
        }
        return locked;
    }
    // Wakes those who were let go on meanwhile, now that they find the lock free.
    void unlock() {
        if (count_ != 0) [[unlikely]] {
            unlock_and_wake();
            return;
        }
        is_held_.store(false, std::memory_order_relaxed);
        mutex_.unlock();
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

    // With the lock held. How many are to be woken when it is released.
    [[nodiscard]] std::size_t waking() const { return count_; }

  private:
    static constexpr int kLooks = 100;
    static constexpr std::size_t kMost = 8;

    void unlock_and_wake() {
        const std::size_t count = std::exchange(count_, 0);
        const std::array<const WakeWord*, kMost> words = words_;
        unlock();
        for (std::size_t i = 0; i < count; ++i) {
            words[i]->wake();
        }
    }

    std::mutex mutex_;
    std::atomic<bool> is_held_{false};  // a hint: cheaper to look at than the mutex
    std::size_t count_ = 0;
    std::array<const WakeWord*, kMost> words_{};  // whose owners sleep
};

}  // namespace simverbs
