#include "simverbs/threads/thread_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace simverbs {
namespace {

// Two looks this far apart must agree before a thread counts as asleep.
constexpr std::int64_t kAsleepNs = 50'000;
// How long the kernel may take to wake a thread that an event was delivered to.
constexpr std::int64_t kWakeNs = 5'000'000;

// A thread that sleeps is likely to sleep as long again: of that time, this share passes until the
// next look, but no more than the other.
constexpr std::int64_t kShareOfSleep = 8;
constexpr std::int64_t kLongestPauseNs = 1'000'000;

// A thread that naps is watched for as long before it counts as one.
constexpr std::int64_t kNapsNs = 1'000'000;

constexpr std::size_t kBufferBytes = 512;
constexpr std::size_t kStatusBytes = 4096;

int open_entry(pid_t process, pid_t thread, const char* entry) {
    const std::string path = fmt::format("/proc/{}/task/{}/{}", process, thread, entry);
    return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

// The entry's text, "" when it cannot be read.
template <std::size_t Bytes>
std::string_view read_entry(int descriptor, std::array<char, Bytes>& buffer) {
    const ssize_t got = pread(descriptor, buffer.data(), buffer.size() - 1, 0);
    const std::size_t length = got > 0 ? static_cast<std::size_t>(got) : 0;
    buffer[length] = '\0';
    return {buffer.data(), length};
}

// The letter of /proc/.../stat, '\0' where there is none. A thread that has been woken is 'R' at
// once.
char state_in(std::string_view stat) {
    const std::size_t name_end = stat.rfind(')');
    return name_end != std::string_view::npos && name_end + 2 < stat.size() ? stat[name_end + 2]
                                                                            : '\0';
}

}  // namespace

// The kernel's data about a thread.
struct ThreadWatch::Sight {
    enum class Where : std::uint8_t { kRunning, kAsleep, kStopped, kEnded };
    Where where = Where::kRunning;
    WakeUps wake_ups;  // of one asleep
    std::uint64_t runs = 0;
    std::int64_t cpu_ns = 0;
};

// The limit for a thread that has spun before: whoever waits for memory does so again and again.
constexpr std::int64_t kSpinsAgainNs = 2'000'000;

// A loop around sched_yield(2) is known by as many turns, each of which took as little time on
// average and ended while the thread could have gone on; a scheduler's slice is longer.
constexpr std::uint64_t kTurns = 100;
constexpr std::uint64_t kTurnsAgain = 10;
constexpr std::int64_t kTurnNs = 100'000;

// Turns of a thread on a processor that did not end with a sleep.
std::uint64_t forced_turns(pid_t process, pid_t thread) {
    constexpr std::string_view kLine = "\nnonvoluntary_ctxt_switches:";
    std::array<char, kStatusBytes> buffer;
    const int file = open_entry(process, thread, "status");
    const std::string_view status = read_entry(file, buffer);
    if (file >= 0) {
        close(file);
    }
    const std::size_t line = status.find(kLine);
    return line == std::string_view::npos
               ? 0
               : std::strtoull(status.data() + line + kLine.size(), nullptr, 10);
}

std::int64_t wall_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::string ThreadWatch::program() const {
    std::array<char, kBufferBytes> buffer;
    const int file = open_entry(process_, thread_, "comm");
    std::string_view program = read_entry(file, buffer);
    if (file >= 0) {
        close(file);
    }
    program = program.substr(0, program.find('\n'));
    return std::string(program.empty() ? "gone" : program);
}

std::string ThreadWatch::name() const {
    return fmt::format("thread {} ({})", thread_, program());
}

std::chrono::nanoseconds ThreadWatch::busy_for() const {
    if (!watched_ || acted_) {
        return std::chrono::nanoseconds::zero();
    }
    const std::int64_t cpu_ns = cpu_last_ns_ - awake_cpu_ns_;
    const std::uint64_t turns = runs_ - awake_run_;
    const bool are_short =
        turns >= kTurnsAgain && cpu_ns <= static_cast<std::int64_t>(turns) * kTurnNs;
    return std::chrono::nanoseconds(are_short ? looked_at_ns_ - awake_since_ns_ : cpu_ns);
}

void ThreadWatch::begin_awake(std::uint64_t runs, std::int64_t cpu_ns, std::int64_t now) {
    spins_now_ = false;
    awake_run_ = runs;
    awake_cpu_ns_ = cpu_ns;
    awake_since_ns_ = now;
}

void ThreadWatch::time_passed() {
    was_passed_ = was_passed_ || (wake_ups_.by_signal && state_ == ThreadState::kAsleep);
}

void ThreadWatch::was_in_library() {
    was_woken_ = was_woken_ || was_passed_;
    was_passed_ = false;
    forget();
}

void ThreadWatch::expect_wake() {
    wakes_until_ns_ = wall_ns() + kWakeNs;
}

ThreadWatch& ThreadWatch::operator=(ThreadWatch&& other) noexcept {
    std::swap(process_, other.process_);
    std::swap(thread_, other.thread_);
    std::swap(stat_, other.stat_);
    std::swap(schedstat_, other.schedstat_);
    std::swap(syscall_, other.syscall_);
    std::swap(spins_, other.spins_);
    forget();
    return *this;
}

ThreadWatch::~ThreadWatch() {
    for (const int descriptor : {stat_, schedstat_, syscall_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
}

// Most looks are at who sleeps on, in the same call as before: two reads tell. In this order: had
// it been woken before the first, the second would not matter. The call alone does not tell: of a
// thread that has been woken but was given no processor yet, the kernel still names it.
bool ThreadWatch::sleeps_on() {
    std::array<char, kBufferBytes> buffer;
    if (state_in(read_entry(stat_, buffer)) != 'S') {
        return false;
    }
    Sight sight;
    read_times(sight);
    return sight.runs == runs_;
}

// Time on a processor in ns, time waiting for one, and how often it was given one.
void ThreadWatch::read_times(Sight& sight) {
    std::array<char, kBufferBytes> buffer;
    const std::string_view schedule = read_entry(schedstat_, buffer);
    char* next = buffer.data();
    sight.cpu_ns = static_cast<std::int64_t>(std::strtoull(next, &next, 10));
    std::strtoull(next, &next, 10);
    sight.runs = schedule.empty() ? 0 : std::strtoull(next, &next, 10);
}

ThreadWatch::Sight ThreadWatch::see() {
    Sight sight;
    if (stat_ < 0) {
        stat_ = open_entry(process_, thread_, "stat");
        if (stat_ < 0) {
            sight.where = errno == ENOENT ? Sight::Where::kEnded : Sight::Where::kRunning;
            return sight;
        }
        schedstat_ = open_entry(process_, thread_, "schedstat");
        syscall_ = open_entry(process_, thread_, "syscall");
    }
    if (settled_ && sleeps_on()) {
        sight.where = Sight::Where::kAsleep;
        sight.wake_ups = wake_ups_;
        sight.runs = runs_;
        sight.cpu_ns = cpu_last_ns_;
        return sight;
    }
    std::array<char, kBufferBytes> buffer;
    const char state = state_in(read_entry(stat_, buffer));
    if (state == '\0') {
        sight.where = errno == ESRCH ? Sight::Where::kEnded : Sight::Where::kRunning;
        return sight;
    }
    read_times(sight);
    if (state == 'T' || state == 't') {
        sight.where = Sight::Where::kStopped;
    } else if (state == 'Z' || state == 'X') {
        sight.where = Sight::Where::kEnded;
    } else if (state == 'S') {  // not 'D': the kernel is busy for it, and soon done
        if (find_wake_ups(process_, read_entry(syscall_, buffer), sight.wake_ups)) {
            sight.where = Sight::Where::kAsleep;
        }
    }
    return sight;
}

ThreadState ThreadWatch::look(std::chrono::nanoseconds spin_limit,
                              std::chrono::nanoseconds interval) {
    const std::int64_t now = wall_ns();
    if (looked_at_ns_ == kNever && interval.count() > 0) {
        looked_at_ns_ = now;  // it has just been in the library: it runs
        state_ = ThreadState::kRuns;
    } else if (now - looked_at_ns_ >= pause_after_look(interval.count())) {
        looked_at_ns_ = now;
        state_ = judge(see(), now, spin_limit);
    }
    return state_;
}

std::int64_t ThreadWatch::pause_after_look(std::int64_t interval_ns) const {
    const bool is_to_wake = looked_at_ns_ < wakes_until_ns_;
    const bool sleeps_on = settled_ && state_ != ThreadState::kRuns && !is_to_wake;
    if (interval_ns == 0 || !sleeps_on) {
        return interval_ns;
    }
    const std::int64_t share = (looked_at_ns_ - asleep_since_ns_) / kShareOfSleep;
    return std::clamp(share, interval_ns, std::max(interval_ns, kLongestPauseNs));
}

ThreadState ThreadWatch::judge(const Sight& seen, std::int64_t now,
                               std::chrono::nanoseconds spin_limit) {
    if (std::exchange(acted_, false) || !watched_) {
        begin_awake(seen.runs, seen.cpu_ns, now);
    }
    if (!watched_) {
        watched_ = true;
        asleep_ = settled_ = false;
        cpu_ns_ = seen.cpu_ns;
        first_turn_ = seen.runs;
        first_look_ns_ = now;
    }
    cpu_last_ns_ = seen.cpu_ns;
    const bool moved = seen.runs != runs_;
    runs_ = seen.runs;
    if (moved) {
        wakes_until_ns_ = 0;  // it has been awake since
        was_woken_ = was_woken_ || was_passed_;
        was_passed_ = false;
    }
    switch (seen.where) {
        case Sight::Where::kEnded:
            ended_ = true;
            return ThreadState::kEnded;
        case Sight::Where::kAsleep:
            break;
        case Sight::Where::kRunning:
        case Sight::Where::kStopped:
            asleep_ = settled_ = false;
            if (seen.where != Sight::Where::kRunning || spin_limit.count() == 0 ||
                !spins(seen, now, spins_ ? kSpinsAgainNs : spin_limit.count())) {
                return ThreadState::kRuns;
            }
            spins_ = true;
            return ThreadState::kSpins;
    }
    begin_awake(seen.runs, seen.cpu_ns, now);
    wake_ups_ = seen.wake_ups;
    if (!asleep_ || moved) {
        asleep_ = true;
        settled_ = false;
        asleep_since_ns_ = now;
    }
    settled_ = settled_ || now - asleep_since_ns_ >= kAsleepNs;
    const bool is_about_to_wake = wake_ups_.by_descriptor && now < wakes_until_ns_;
    if (is_about_to_wake || !(settled_ || naps(seen, now))) {
        return ThreadState::kRuns;
    }
    return wake_ups_.by_time ? ThreadState::kAsleepForTime : ThreadState::kAsleep;
}

bool ThreadWatch::spins(const Sight& seen, std::int64_t now, std::int64_t limit_ns) {
    spins_now_ = spins_now_ || seen.cpu_ns - awake_cpu_ns_ > limit_ns ||
                 (now - awake_since_ns_ > limit_ns && yields(seen));
    return spins_now_;
}

// Asks for the turns that ended without a sleep once there are many short ones, and again when
// there are as many more.
bool ThreadWatch::yields(const Sight& seen) {
    const std::uint64_t turns = seen.runs - first_turn_;
    if (turns < (spins_ ? kTurnsAgain : kTurns) ||
        seen.cpu_ns - cpu_ns_ > static_cast<std::int64_t>(turns) * kTurnNs) {
        return false;
    }
    const std::uint64_t forced = forced_turns(process_, thread_);
    const bool gave_all_away = counts_turns_ && forced - first_forced_ >= turns - turns / 8;
    counts_turns_ = true;
    first_turn_ = seen.runs;
    first_forced_ = forced;
    return gave_all_away;
}

// A loop around usleep(3) is found at another nap by each look: no two agree.
bool ThreadWatch::naps(const Sight& seen, std::int64_t now) const {
    const std::int64_t watched = now - first_look_ns_;
    return wake_ups_.by_time && watched >= kNapsNs && seen.cpu_ns - cpu_ns_ <= watched / 2;
}

}  // namespace simverbs
