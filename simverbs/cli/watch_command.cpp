#include "simverbs/cli/watch_command.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "simverbs/cli/dead_worlds.hpp"
#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/fabric_question.hpp"
#include "simverbs/cli/watch_screen.hpp"
#include "simverbs/cli/world_options.hpp"

namespace simverbs::cli {
namespace {

constexpr std::chrono::milliseconds kLeastInterval(10);
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

volatile std::sig_atomic_t g_stopped = 0;
volatile std::sig_atomic_t g_signal = 0;  // that stopped it; 0: q did
volatile std::sig_atomic_t g_resized = 0;

void on_signal(int signal) {
    if (signal == SIGWINCH) {
        g_resized = 1;
        return;
    }
    g_signal = signal;
    g_stopped = 1;
}

std::int64_t wall_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

// The keys of a terminal, each at once and not shown, for as long as it lives. In the background
// there are none: who reads there is stopped.
class Keys {
  public:
    Keys() {
        if (isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
            tcgetattr(STDIN_FILENO, &before_) == 0) {
            termios each = before_;
            each.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
            each.c_cc[VMIN] = 0;
            each.c_cc[VTIME] = 0;
            descriptor_ = tcsetattr(STDIN_FILENO, TCSANOW, &each) == 0 ? STDIN_FILENO : -1;
        }
    }
    ~Keys() {
        if (descriptor_ >= 0) {
            tcsetattr(descriptor_, TCSANOW, &before_);
        }
    }
    Keys(const Keys&) = delete;
    Keys& operator=(const Keys&) = delete;

    // -1: none.
    [[nodiscard]] int descriptor() const { return descriptor_; }
    // Returns true if q is among the keys that have been pressed, or the terminal has gone.
    [[nodiscard]] bool ask_to_end() const {
        std::array<char, 64> keys{};
        const ssize_t got = read(descriptor_, keys.data(), keys.size());
        return got <= 0 || std::find(keys.begin(), keys.begin() + got, 'q') != keys.begin() + got;
    }

  private:
    termios before_{};
    int descriptor_ = -1;
};

// Signals come only while this waits, so that none is missed between a look at a flag and the wait.
class Waiter {
  public:
    Waiter() {
        sigset_t ours;
        sigemptyset(&ours);
        struct sigaction action {};
        action.sa_handler = on_signal;
        for (const int signal : {SIGINT, SIGTERM, SIGWINCH}) {
            sigaddset(&ours, signal);
            sigaction(signal, &action, nullptr);
        }
        sigprocmask(SIG_BLOCK, &ours, &outside_);
        for (const int signal : {SIGINT, SIGTERM, SIGWINCH}) {
            sigdelset(&outside_, signal);
        }
    }
    // Until `descriptor` (-1: none) is readable, a key, a signal, or that moment (0: no end). True:
    // it is readable.
    [[nodiscard]] bool wait(int descriptor, std::int64_t until_ns) const {
        std::array<pollfd, 2> wanted{pollfd{descriptor, POLLIN, 0},
                                     pollfd{keys_.descriptor(), POLLIN, 0}};
        const std::int64_t left = std::max<std::int64_t>(0, until_ns - wall_now());
        const timespec timeout{left / kNsPerSecond, left % kNsPerSecond};
        const int ready =
            ppoll(wanted.data(), wanted.size(), until_ns == 0 ? nullptr : &timeout, &outside_);
        if (ready > 0 && wanted[1].revents != 0 && keys_.ask_to_end()) {
            g_stopped = 1;
        }
        return ready > 0 && wanted[0].revents != 0;
    }
    [[nodiscard]] bool has_keys() const { return keys_.descriptor() >= 0; }

  private:
    Keys keys_;
    sigset_t outside_{};
};

// The other screen of a terminal, without a cursor, for as long as it lives.
class Terminal {
  public:
    Terminal() : is_one_(isatty(STDOUT_FILENO) == 1) { put("\x1b[?1049h\x1b[?25l"); }
    ~Terminal() { put("\x1b[?25h\x1b[?1049l"); }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    [[nodiscard]] ScreenSize size() const {
        winsize found{};
        if (!is_one_ || ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_row == 0) {
            return {};
        }
        return {static_cast<std::size_t>(found.ws_row) - 1, found.ws_col};
    }
    // Over what was there, without clearing it first: that would flicker.
    void show(const std::string& text) const {
        if (!is_one_) {
            fmt::print("{}\n", text);
            std::fflush(stdout);
            return;
        }
        std::string drawn = "\x1b[H";
        for (const char c : text) {
            drawn += c == '\n' ? "\x1b[K\n" : std::string(1, c);
        }
        put(drawn + "\x1b[J");
    }

  private:
    void put(const std::string& text) const {
        if (is_one_) {
            fmt::print("{}", text);
            std::fflush(stdout);
        }
    }

    bool is_one_;
};

enum class Look { kSeen, kStopped, kNoWorld, kUnanswered, kNotUnderstood, kSilent };

// `reason`: why there is nothing to see.
// `text`: the answer as it came.
Look look(const std::string& socket, const Waiter& waiter, Watched& seen, std::string& reason,
          std::string& text) {
    FabricRequest request;
    request.action = FabricAction::kWatch;
    FabricQuestion question(socket, request);
    if (!question.is_asked()) {
        reason = question.reason();
        return Look::kNoWorld;
    }
    constexpr int kSeconds = 5;
    for (std::int64_t until = wall_now() + kSeconds * kNsPerSecond;
         !waiter.wait(question.descriptor(), until);) {
        if (g_stopped != 0) {
            return Look::kStopped;
        }
        if (wall_now() >= until && server_is_stopped(question.descriptor())) {
            reason = describe_silence(question.descriptor(), socket, kSeconds);
            return Look::kSilent;
        }
        until = std::max(until, wall_now() + kNsPerSecond);
    }
    if (!question.take_answer()) {
        reason = question.reason();
        return Look::kUnanswered;
    }
    std::optional<Watched> watched = read_watched(question.text(), wall_now());
    if (!watched) {
        reason = fmt::format("the world at '{}' is of another version of simverbs", socket);
        return Look::kNotUnderstood;
    }
    seen = std::move(*watched);
    text = question.text();
    return Look::kSeen;
}

}  // namespace

WatchCommand::WatchCommand(CLI::App& app, std::string& world)
    : world_(world),
      command_(app.add_subcommand("watch", "A served world, live: queue pairs, rates, errors")) {
    add_world(*command_, world);
    add_limit(*command_, "--interval", interval_, "time from look to look, 10ms at least", "1s");
    command_->add_option("--count", count_, "looks, then it ends; 0: no end")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1'000'000'000}));
    CLI::Option* const once = command_->add_flag("--once", once_, "one look, and no rates");
    command_->add_flag("--json", as_json_, "with --once: for programs")->needs(once);
}

int WatchCommand::run() {
    if (interval_ < kLeastInterval) {
        return complain(fmt::format("--interval is {} ms at least", kLeastInterval.count()),
                        kUsage);
    }
    const std::string socket = socket_path(world_);
    if (clear_dead_world(socket)) {
        return kUsage;
    }
    const Waiter waiter;
    std::optional<Terminal> terminal;
    std::optional<Watched> before;
    Watched now;
    const std::uint64_t looks = once_ ? 1 : count_;
    const std::int64_t interval_ns = std::chrono::nanoseconds(interval_).count();
    const std::string_view keys = waiter.has_keys() && !once_ ? "q: quit" : "";
    for (std::uint64_t done = 0; g_stopped == 0;) {
        const std::int64_t next = wall_now() + interval_ns;
        std::string reason;
        std::string answer;
        const Look result = look(socket, waiter, now, reason, answer);
        if (result == Look::kStopped) {
            break;
        }
        if (result != Look::kSeen) {
            terminal.reset();
            const bool has_ended =
                before && (result == Look::kNoWorld || result == Look::kUnanswered);
            return has_ended ? complain("the world has ended", kPassed) : complain(reason, kUsage);
        }
        if (!terminal && !once_) {
            terminal.emplace();
        }
        const Watched* const was = before ? &*before : nullptr;
        if (once_) {
            fmt::print("{}", as_json_ ? answer : watch_screen(now, was, {}, ""));
        } else {
            terminal->show(watch_screen(now, was, terminal->size(), keys));
        }
        if (++done == looks) {
            break;
        }
        while (g_stopped == 0 && wall_now() < next) {
            static_cast<void>(waiter.wait(-1, next));
            if (g_resized != 0) {
                g_resized = 0;
                terminal->show(watch_screen(now, was, terminal->size(), keys));
            }
        }
        before = std::move(now);
    }
    return g_signal == 0 ? kPassed : kSignalled + static_cast<int>(g_signal);
}

}  // namespace simverbs::cli
