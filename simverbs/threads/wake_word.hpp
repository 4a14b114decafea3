// A word on which one thread waits until another lets it go on: it spins for a short while, where
// that is worth it, then sleeps in the kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace simverbs {

class WakeWord {
  public:
    // To be taken before the owner says that it waits.
    [[nodiscard]] std::uint32_t ticket() const {
        return word_.load(std::memory_order_relaxed) / kStep;
    }
    [[nodiscard]] bool is_released(std::uint32_t ticket) const {
        return word_.load(std::memory_order_acquire) / kStep != ticket;
    }
    // One thread at a time. True: the owner sleeps, and wants wake(), which may come when it has
    // gone on, and even when the word is there no more.
    [[nodiscard]] bool release();
    void wake() const;
    // By any thread. Asks the owner, which spins, to lead.
    void ask() { word_.fetch_or(kAsked, std::memory_order_acq_rel); }
    // By the owner. Returns true if it has been asked since it called this last.
    [[nodiscard]] bool take_asked() {
        return is_asked() && (word_.fetch_and(~kAsked, std::memory_order_acq_rel) & kAsked) != 0;
    }
    // By the owner. True once it is released; false once it is asked, and after `limit` of wall
    // time.
    [[nodiscard]] bool spin(std::uint32_t ticket, std::chrono::nanoseconds limit) const;
    void sleep(std::uint32_t ticket);
    bool sleep_for(std::uint32_t ticket, std::chrono::nanoseconds limit);

  private:
    [[nodiscard]] bool is_asked() const {
        return (word_.load(std::memory_order_acquire) & kAsked) != 0;
    }

    static constexpr std::uint32_t kSleeps = 1;  // the owner sleeps, or is about to
    static constexpr std::uint32_t kAsked = 2;
    static constexpr std::uint32_t kStep = 4;

    // Alone in its cache line: other owners' words change while this one is watched.
    alignas(64) std::atomic<std::uint32_t> word_{0};
};

// A pause of a loop that waits for another processor.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace simverbs
