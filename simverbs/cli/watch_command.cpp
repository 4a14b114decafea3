#include "simverbs/cli/watch_command.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "simverbs/cli/fabric_question.hpp"
#include "simverbs/cli/watch_screen.hpp"
#include "simverbs/cli/world_commands.hpp"

namespace simverbs::cli {
namespace {

constexpr int kFailed = 1;
constexpr std::uint64_t kLeastIntervalMs = 10;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

volatile std::sig_atomic_t g_stopped = 0;
volatile std::sig_atomic_t g_resized = 0;

void on_signal(int signal) {
    (signal == SIGWINCH ? g_resized : g_stopped) = 1;
}

std::int64_t wall_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

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
    // Until `descriptor` (-1: none) is readable, a signal, or that moment (0: no end). True: it is.
    bool wait(int descriptor, std::int64_t until_ns) const {
        pollfd wanted{descriptor, POLLIN, 0};
        const std::int64_t left = std::max<std::int64_t>(0, until_ns - wall_now());
        const timespec timeout{left / kNsPerSecond, left % kNsPerSecond};
        return ppoll(&wanted, descriptor < 0 ? 0 : 1, until_ns == 0 ? nullptr : &timeout,
                     &outside_) == 1;
    }

  private:
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

enum class Look { kSeen, kStopped, kNoWorld, kUnanswered, kNotUnderstood };

// `reason`: why there is nothing to see.
Look look(const std::string& socket, const Waiter& waiter, Watched& seen, std::string& reason) {
    FabricRequest request;
    request.action = FabricAction::kWatch;
    FabricQuestion question(socket, request);
    if (!question.is_asked()) {
        reason = question.reason();
        return Look::kNoWorld;
    }
    while (!waiter.wait(question.descriptor(), 0)) {
        if (g_stopped != 0) {
            return Look::kStopped;
        }
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
    return Look::kSeen;
}

}  // namespace

WatchCommand::WatchCommand(CLI::App& app, std::string& world)
    : command_(app.add_subcommand("watch", "A served world, live: queue pairs, rates, errors")) {
    command_->add_option("--world", world, "name of the world, or path of its socket");
    command_->add_option("--interval", interval_ms_, "of wall time, with a unit: 500ms, 2s")
        ->transform(CLI::AsNumberWithUnit(
            std::map<std::string, std::uint64_t>{{"ms", 1}, {"s", 1000}, {"min", 60'000}},
            CLI::AsNumberWithUnit::UNIT_REQUIRED));
    command_->add_option("--count", count_, "looks, then it ends; 0: no end");
    command_->add_flag("--once", once_, "one look, and no rates");
}

int WatchCommand::run(const std::string& socket) const {
    if (interval_ms_ < kLeastIntervalMs) {
        fmt::print(stderr, "simverbs: --interval is {} ms at least\n", kLeastIntervalMs);
        return kUsage;
    }
    const Waiter waiter;
    std::optional<Terminal> terminal;
    std::optional<Watched> before;
    Watched now;
    const std::uint64_t looks = once_ ? 1 : count_;
    const auto interval_ns = static_cast<std::int64_t>(interval_ms_) * 1'000'000;
    for (std::uint64_t done = 0; g_stopped == 0;) {
        const std::int64_t next = wall_now() + interval_ns;
        std::string reason;
        const Look result = look(socket, waiter, now, reason);
        if (result == Look::kStopped) {
            break;
        }
        if (result != Look::kSeen) {
            terminal.reset();
            const bool has_ended = before && result != Look::kNotUnderstood;
            fmt::print(stderr, "simverbs: {}\n", has_ended ? "the world has ended" : reason);
            return has_ended ? 0 : kFailed;
        }
        if (!terminal && !once_) {
            terminal.emplace();
        }
        const Watched* const was = before ? &*before : nullptr;
        if (once_) {
            fmt::print("{}", watch_screen(now, was, {}));
        } else {
            terminal->show(watch_screen(now, was, terminal->size()));
        }
        if (++done == looks) {
            break;
        }
        while (g_stopped == 0 && wall_now() < next) {
            waiter.wait(-1, next);
            if (g_resized != 0) {
                g_resized = 0;
                terminal->show(watch_screen(now, was, terminal->size()));
            }
        }
        before = std::move(now);
    }
    return 0;
}

}  // namespace simverbs::cli
