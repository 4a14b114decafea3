// A lock for a handful of instructions that two threads rarely want at once.
#pragma once

#include <atomic>

#include <sched.h>

namespace simverbs {

class SpinLock {
  public:
    void lock() {
        if (flag_.test_and_set(std::memory_order_acquire)) [[unlikely]] {
            wait();
        }
    }
    bool try_lock() { return !flag_.test_and_set(std::memory_order_acquire); }
    void unlock() { flag_.clear(std::memory_order_release); }

  private:
    [[gnu::noinline]] void wait() {
        do {
            for (int i = 0; flag_.test(std::memory_order_relaxed); ++i) {
                if (i > 64) {
                    sched_yield();
                }
            }
        } while (flag_.test_and_set(std::memory_order_acquire));
    }

    std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

}  // namespace simverbs
