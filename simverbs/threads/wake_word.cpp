#include "simverbs/threads/wake_word.hpp"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/threads/thread_watch.hpp"

namespace simverbs {
namespace {

constexpr int kLooksBetweenClocks = 16;
constexpr std::int64_t kAloneNs = 20'000;

// Sleeps while the word has that value; wakes up for no reason at times.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                const timespec* limit) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, limit, nullptr, 0);
}

}  // namespace

bool WakeWord::release() {
    const std::uint32_t before = word_.load(std::memory_order_relaxed);
    const std::uint32_t next = (before / kStep + 1) * kStep;
    return (word_.exchange(next, std::memory_order_acq_rel) & kSleeps) != 0;
}

void WakeWord::wake() const {
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool WakeWord::spin(std::uint32_t ticket, std::chrono::nanoseconds limit) const {
    const std::int64_t begin = wall_ns();
    for (std::int64_t spent = 0; spent < limit.count(); spent = wall_ns() - begin) {
        for (int i = 0; i < kLooksBetweenClocks; ++i) {
            const std::uint32_t word = word_.load(std::memory_order_acquire);
            if (word / kStep != ticket) {
                return true;
            }
            if ((word & kAsked) != 0) {
                return false;
            }
            relax();
        }
        if (spent > kAloneNs) {
            sched_yield();  // the releaser may want this very processor
        }
    }
    return is_released(ticket);
}

void WakeWord::sleep(std::uint32_t ticket) {
    while (!is_released(ticket)) {
        std::uint32_t expected = ticket * kStep;
        word_.compare_exchange_strong(expected, expected | kSleeps, std::memory_order_acq_rel);
        futex_wait(word_, ticket * kStep | kSleeps, nullptr);
    }
}

bool WakeWord::sleep_for(std::uint32_t ticket, std::chrono::nanoseconds limit) {
    std::uint32_t expected = ticket * kStep;
    word_.compare_exchange_strong(expected, expected | kSleeps, std::memory_order_acq_rel);
    const timespec time{static_cast<time_t>(limit.count() / 1'000'000'000),
                        static_cast<long>(limit.count() % 1'000'000'000)};
    futex_wait(word_, ticket * kStep | kSleeps, &time);
    return is_released(ticket);
}

}  // namespace simverbs
