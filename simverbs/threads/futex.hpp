// Sleeping in the kernel on a word of this process, and waking who sleeps there: futex(2).
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simverbs {

// Sleeps while the word has that value; wakes up for no reason at times, and after `limit`.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                       const timespec* limit = nullptr) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, limit, nullptr, 0);
}

// Wakes up to `count` threads. The word may be gone by now.
inline void futex_wake(const std::atomic<std::uint32_t>& word, int count) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace simverbs
