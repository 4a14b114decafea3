#include "simverbs/driver/process_branches.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simverbs/driver/child_end.hpp"
#include "simverbs/driver/process_maps.hpp"
#include "simverbs/threads/thread_roster.hpp"

namespace simverbs::driver {
namespace {

namespace fs = std::filesystem;

constexpr auto kTimeForReport = std::chrono::milliseconds(500);

constexpr std::array kTimers = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

void write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(descriptor, text.data(), text.size());
        if (written < 0 && errno != EINTR) {
            return;  // nobody explores any more
        }
        text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    }
}

std::string read_file(int descriptor) {
    std::string text;
    std::array<char, 16384> block;
    ssize_t got = 0;
    while ((got = pread(descriptor, block.data(), block.size(), static_cast<off_t>(text.size()))) >
           0) {
        text.append(block.data(), static_cast<std::size_t>(got));
    }
    return text;
}

std::ptrdiff_t count_threads() {
    std::error_code error;
    const fs::directory_iterator threads("/proc/self/task", error);
    return error ? 0 : std::distance(threads, fs::directory_iterator());
}

// Asks a child for a report at its limit, and ends it soon after. Returns true if it had to.
bool end_by(pid_t child, const ChildEnd& end, std::chrono::milliseconds limit) {
    if (!end.can_wait() || end.comes_within(limit)) {
        return false;
    }
    kill(child, SIGUSR2);
    static_cast<void>(end.comes_within(kTimeForReport));
    kill(child, SIGKILL);
    return true;
}

// A child would change what its parent and its siblings see.
bool shares_memory(const BranchSeries& series) {
    ProcessMaps maps;
    std::uint64_t from = 0;
    while (const auto mapping = maps.at_or_after(from)) {
        if (mapping->writable && mapping->is_shared && !series.shares(mapping->from)) {
            return true;
        }
        from = mapping->to;
    }
    return !maps.is_open();
}

bool has_children() {
    siginfo_t any{};
    return waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool leaves_children_alone() {
    struct sigaction action {};
    sigaction(SIGCHLD, nullptr, &action);
    return action.sa_handler == SIG_DFL && (action.sa_flags & SA_NOCLDWAIT) == 0;
}

}  // namespace

const ProcessBranches::Explorer& ProcessBranches::explorer() {
    static const Explorer kExplorer = [] {
        Explorer found;
        const char* const value = std::getenv(kBranchesVariable);
        if (value == nullptr) {
            return found;
        }
        std::istringstream lines(value);
        long long limit = 0;
        std::string reports;
        std::string output;
        if (lines >> found.starter >> limit && std::getline(lines >> std::ws, reports) &&
            std::getline(lines, output)) {
            found.limit = std::chrono::milliseconds(limit);
            found.reports = open(reports.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
            found.output = open(output.c_str(), O_RDWR | O_CLOEXEC);
            for (std::string target; std::getline(lines, target);) {
                found.inherited.push_back(target);
            }
        }
        unsetenv(kBranchesVariable);  // programs that this one starts are not explored
        return found;
    }();
    return kExplorer;
}

std::unique_ptr<ProcessBranches> ProcessBranches::make(EventBacklog& events, Conductor& conductor) {
    const Explorer& found = explorer();
    if (found.reports < 0 || found.output < 0) {
        return nullptr;
    }
    std::unique_ptr<ProcessBranches> made(new ProcessBranches(found, events, conductor));
    made->report({.kind = BranchReportKind::kStarted}, {}, {});
    return made;
}

bool ProcessBranches::acts_here(std::string_view fault, std::uint64_t moment) {
    if (!fault.starts_with(kForkingFault)) {
        report({.kind = BranchReportKind::kFired}, fault, {});
        return true;
    }
    if (!branch_.empty()) {
        return false;
    }
    if (is_in_series_) {
        if (moment_ != moment) {
            BranchSeries::end();
        }
        return acts_in_series(fault);
    }
    if (moment_ != moment) {
        moment_ = moment;
        obstacle_ = describe_obstacle();
        calls_to_skip_ = 0;
        next_is_alone_ = false;
    }
    if (calls_to_skip_ > 0) {
        --calls_to_skip_;
        return false;
    }
    if (!obstacle_.empty()) {
        report({.kind = BranchReportKind::kNotForked}, fault, obstacle_);
        return false;
    }
    return branch_at(fault);
}

void ProcessBranches::report_end(Simulation& simulation) const {
    if (branch_.empty() && getppid() != explorer_.starter) {
        return;  // a child of the program, which ends when it likes
    }
    const RunMarks& marks = conductor_.marks();
    report({.kind = BranchReportKind::kWorldEnded,
            .time_ps = fabric::to_picoseconds(simulation.loop().now()),
            .run_digest = simulation.bus().run_digest(),
            .turns_digest = conductor_.turns_digest()},
           branch_, marks.deterministic() ? "" : marks.describe());
}

std::string ProcessBranches::describe_obstacle() {
    if (getppid() != explorer_.starter) {
        return "another program started it";
    }
    if (gettid() != getpid() || count_threads() != (conductor_.has_helper() ? 2 : 1)) {
        return "it has several threads";
    }
    if (ThreadRoster::instance().has_unjoined()) {
        // A child gives the stack of a thread that has ended, and with it its handle, to another.
        return "it has a thread to join";
    }
    if (!leaves_children_alone() || has_children()) {
        return "it has child processes";
    }
    if (shares_memory(series_)) {
        return "it shares memory with others";
    }
    return describe_foreign_descriptor();
}

// A child takes away from its parent what it reads there, and writes what the parent never wrote.
std::string ProcessBranches::describe_foreign_descriptor() const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd", error)) {
        const std::string target = fs::read_symlink(entry.path(), error).string();
        const auto number =
            static_cast<int>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
        const bool is_harmless =
            number <= STDERR_FILENO || number == explorer_.reports || number == explorer_.output ||
            target.starts_with("/proc/") || target.starts_with("/memfd:simverbs-context") ||
            target == "/dev/null" || target == "/dev/urandom" || events_.has(number) ||
            std::ranges::find(explorer_.inherited, target) != explorer_.inherited.end();
        if (!error && !is_harmless) {
            return fmt::format("its descriptor {} is open ({})", number, target);
        }
    }
    return error ? "/proc/self/fd cannot be read" : "";
}

bool ProcessBranches::branch_at(std::string_view fault) {
    prepare_fork();
    if (!std::exchange(next_is_alone_, false)) {
        if (const auto acts = try_series_at(fault)) {
            return *acts;
        }
    }
    return fork_at(fault);
}

void ProcessBranches::prepare_fork() {
    events_.note_unread();
    for (std::size_t i = 0; i < kTimers.size(); ++i) {
        getitimer(kTimers[i], &timers_[i]);
    }
    output_before_ = lseek(explorer_.output, 0, SEEK_END);
}

bool ProcessBranches::fork_at(std::string_view fault) {
    const pid_t parent = getpid();
    const ThreadRoster::WholeFork whole;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        branch_ = fault;
        if (!continue_in_child()) {
            report({.kind = BranchReportKind::kNotForked}, fault, std::strerror(errno));
            _exit(EXIT_FAILURE);
        }
        return true;
    }
    if (child < 0) {
        report({.kind = BranchReportKind::kNotForked}, fault, std::strerror(errno));
    } else {
        await(child, fault);
    }
    return false;
}

bool ProcessBranches::continue_in_child() {
    ThreadRoster::instance().continue_in_child();
    if (!events_.separate()) {
        return false;
    }
    conductor_.continue_in_child(Conductor::Helper::kStarts);
    for (std::size_t i = 0; i < kTimers.size(); ++i) {
        setitimer(kTimers[i], &timers_[i], nullptr);
    }
    return true;
}

// Returns nothing if the branch of this fault has to run in a child of its own.
std::optional<bool> ProcessBranches::try_series_at(std::string_view fault) {
    const bool has_timers = std::ranges::any_of(timers_, [](const itimerval& timer) {
        return timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0;
    });
    if (has_timers || !series_.begin()) {
        return std::nullopt;
    }
    const pid_t parent = getpid();
    const ThreadRoster::WholeFork whole;
    const pid_t child = fork();
    if (child == 0) {
        return continue_in_series(fault, parent);
    }
    if (child < 0) {
        return std::nullopt;
    }
    const auto [branches, is_broken] = series_.await(child);
    remove_output();
    if (branches == 0) {
        return std::nullopt;
    }
    calls_to_skip_ = branches - 1;
    next_is_alone_ = is_broken;
    return false;
}

// Returns once for each branch. A helper thread would not go back; what waits for one is no branch
// of a series.
bool ProcessBranches::continue_in_series(std::string_view fault, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        BranchSeries::end();
    }
    is_in_series_ = true;
    ThreadRoster::instance().continue_in_child();
    conductor_.continue_in_child(Conductor::Helper::kStays);
    if (!events_.separate()) {
        BranchSeries::end();
    }
    series_.confine();
    if (const auto [ended, status] = series_.next(); !ended.empty()) {
        events_.restore();
        const std::string output = read_file(explorer_.output);
        report({.kind = BranchReportKind::kEnded, .status = status}, ended, output);
        if (std::ssize(output) != output_before_) {
            remove_output();
        }
        series_.note_end();
    }
    return acts_in_series(fault);
}

bool ProcessBranches::acts_in_series(std::string_view fault) {
    if (asked_++ < series_.branches_ended()) {
        return false;
    }
    branch_ = fault;
    series_.begin_branch(fault);
    return true;
}

void ProcessBranches::await(pid_t child, std::string_view fault) {
    const ChildEnd end(child);
    BranchReport ended{.kind = BranchReportKind::kEnded};
    ended.is_late = end_by(child, end, explorer_.limit) ? 1 : 0;
    ended.status = end.status();
    report(ended, fault, read_file(explorer_.output));
    remove_output();
}

void ProcessBranches::remove_output() const {
    if (ftruncate(explorer_.output, output_before_) != 0) {
        fmt::print(stderr, "simverbs: the output of a branch stays: {}\n", std::strerror(errno));
    }
}

void ProcessBranches::report(BranchReport report, std::string_view fault,
                             std::string_view text) const {
    report.name_bytes = static_cast<std::uint32_t>(fault.size());
    report.text_bytes = text.size();
    std::string message(sizeof report, '\0');
    std::memcpy(message.data(), &report, sizeof report);
    message += fault;
    message += text;
    write_all(explorer_.reports, message);
}

}  // namespace simverbs::driver
