// Watching a thread that runs its own code, to tell whether time may move without it: whether it
// sleeps in the kernel, has ended, or burns processor time looking at memory (DESIGN section 4).
//
// It asks /proc. A thread whose entries cannot be read counts as running: time is then held, never
// jumped by mistake.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <sys/types.h>

#include "simverbs/threads/system_call.hpp"
#include "simverbs/time/thread_state.hpp"

namespace simverbs {

class ThreadWatch {
  public:
    ThreadWatch() = default;
    ThreadWatch(pid_t process, pid_t thread) : process_(process), thread_(thread) {}
    ThreadWatch(const ThreadWatch&) = delete;
    ThreadWatch& operator=(const ThreadWatch&) = delete;
    ThreadWatch& operator=(ThreadWatch&& other) noexcept;
    ~ThreadWatch();

    // A thread counts as asleep once two looks, 50 us of wall time apart, agree that it has not
    // moved between them, and from then on until a look finds that it has. One that naps (sleeps
    // with a time limit, again and again) counts as asleep whenever a look finds it so, once it
    // has slept for half of a millisecond or more since forget(). A thread spins once it has
    // used `spin_limit` of CPU time since it was last found asleep, zero: never, and less than that
    // once it has done so before. For one that yields its processor at each turn the wall's time
    // counts instead. A look less
    // than `interval` after the last one says the same again, and less than that after forget(),
    // that it runs. Where `interval` is not zero, a thread asleep for long is looked at after an
    // eighth of that time, 1 ms at most, unless it was to wake (expect_wake()).
    ThreadState look(std::chrono::nanoseconds spin_limit,
                     std::chrono::nanoseconds interval = std::chrono::nanoseconds::zero());
    // Returns true if the last look found so. Asks nothing: from the first look after forget() on
    // it counts how long the thread spins.
    [[nodiscard]] bool was_asleep() const {
        return state_ == ThreadState::kAsleep || state_ == ThreadState::kAsleepForTime;
    }
    // Returns true if the last look found it asleep until a child process ends.
    [[nodiscard]] bool waits_for_child() const { return was_asleep() && wake_ups_.by_child; }
    // Begins to watch it anew.
    void forget() {
        watched_ = settled_ = ended_ = spins_now_ = counts_turns_ = false;
        looked_at_ns_ = kNever;
    }
    // It has been in the library since the last look, so it is awake.
    void was_in_library();
    // It may have done something else than to spin since the last look: what it uses from the next
    // one on counts.
    void may_have_acted() { acted_ = true; }
    // Returns true if, as of the last look, it has been given a processor since the call before.
    [[nodiscard]] bool has_run_since_asked() { return std::exchange(asked_at_, runs_) != runs_; }
    // Returns true if a look since forget() found so.
    [[nodiscard]] bool has_ended() const { return ended_; }
    // Its name as /proc has it, "gone" where it has ended. That of a program, mostly.
    [[nodiscard]] std::string program() const;
    // "thread 71 (ib_write_lat)". In another run the number is another.
    [[nodiscard]] std::string name() const;
    // CPU time that it had used at the last look since the first one after forget().
    [[nodiscard]] std::chrono::nanoseconds spent() const {
        return std::chrono::nanoseconds(watched_ ? cpu_last_ns_ - cpu_ns_ : 0);
    }
    // CPU time since the last look that found it asleep, or the first one after it acted; the time
    // on the wall clock, if its turns on a processor are short, as those of a thread that yields
    // are.
    [[nodiscard]] std::chrono::nanoseconds busy_for() const;
    // Time has moved since the last look.
    void time_passed();
    // Returns true if a signal has woken it, after time had passed it.
    [[nodiscard]] bool was_woken_by_signal() const { return was_woken_; }
    // Something was delivered to a descriptor that it may sleep on: the kernel is about to wake it.
    void expect_wake();

  private:
    struct Sight;
    [[nodiscard]] std::int64_t pause_after_look(std::int64_t interval_ns) const;
    [[nodiscard]] Sight see();
    [[nodiscard]] bool sleeps_on();
    void read_times(Sight& sight);
    void begin_awake(std::uint64_t runs, std::int64_t cpu_ns, std::int64_t now);
    ThreadState judge(const Sight& seen, std::int64_t now, std::chrono::nanoseconds spin_limit);
    [[nodiscard]] bool spins(const Sight& seen, std::int64_t now, std::int64_t limit_ns);
    [[nodiscard]] bool yields(const Sight& seen);
    [[nodiscard]] bool naps(const Sight& seen, std::int64_t now) const;

    pid_t process_ = 0;
    pid_t thread_ = 0;
    // Kept open: a look is three reads at most.
    int stat_ = -1;
    int schedstat_ = -1;
    int syscall_ = -1;

    ThreadState state_ = ThreadState::kRuns;  // at the last look
    static constexpr std::int64_t kNever = 0;
    std::int64_t looked_at_ns_ = kNever;  // since forget(); wall clock
    bool watched_ = false;                // since forget()
    bool asleep_ = false;                 // at the last look
    bool settled_ = false;                // and found unmoved by two
    bool ended_ = false;                  // since forget()
    WakeUps wake_ups_;                    // at the last look, of one asleep
    bool was_passed_ = false;             // by time, while it slept for a signal
    bool was_woken_ = false;              // since then
    bool acted_ = false;                  // since the last look, perhaps
    bool spins_ = false;                  // has done so before
    bool spins_now_ = false;              // since it was last found asleep
    bool counts_turns_ = false;           // the next two are known
    std::uint64_t first_turn_ = 0;        // runs_, when its turns began to be counted
    std::uint64_t first_forced_ = 0;      // and how many had ended without a sleep
    std::uint64_t runs_ = 0;              // times it was given a processor, at the last look
    std::uint64_t asked_at_ = 0;          // runs_, at the last has_run_since_asked()
    std::int64_t cpu_ns_ = 0;             // it had used at the first look
    std::int64_t cpu_last_ns_ = 0;        // and at the last one
    std::int64_t first_look_ns_ = 0;      // wall clock
    std::uint64_t awake_run_ = 0;         // these three at the last look that found it asleep,
    std::int64_t awake_cpu_ns_ = 0;       // or at the first one, or the one after it acted
    std::int64_t awake_since_ns_ = 0;
    std::int64_t asleep_since_ns_ = 0;
    std::int64_t wakes_until_ns_ = 0;
};

// The wall clock that only ever delays.
std::int64_t wall_ns();

}  // namespace simverbs
