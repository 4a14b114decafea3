#include "simverbs/cli/programs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simverbs/cli/end_signals.hpp"
#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/unreachable_program.hpp"
#include "simverbs/threads/thread_watch.hpp"

namespace simverbs::cli {
namespace {

using namespace std::chrono_literals;

// Processor time, so that a busy machine does not make a program start sooner; and wall time, for
// one that neither runs nor sleeps.
constexpr auto kSettleLimit = 1s;
constexpr auto kSettleWallLimit = 20s;
constexpr auto kAsleepFor = 100ms;
constexpr auto kIdleFor = 1s;
// For a program to end by itself once it was asked to.
constexpr auto kEndWithin = 1s;

// Inodes of TCP sockets in LISTEN, from /proc/PID/net/tcp and tcp6.
std::set<std::string> listening_inodes(pid_t process) {
    std::set<std::string> inodes;
    for (const char* table : {"tcp", "tcp6"}) {
        std::ifstream file(fmt::format("/proc/{}/net/{}", process, table));
        std::string line;
        std::getline(file, line);
        while (std::getline(file, line)) {
            std::istringstream words(line);
            std::array<std::string, 10> word;
            for (std::string& each : word) {
                words >> each;
            }
            if (word[3] == "0A") {
                inodes.insert(word[9]);
            }
        }
    }
    return inodes;
}

bool listens(pid_t process) {
    const std::set<std::string> inodes = listening_inodes(process);
    std::error_code ignored;
    for (const auto& [member, parent] : family_of(process)) {
        const std::string folder = fmt::format("/proc/{}/fd", member);
        for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
            const std::string target =
                std::filesystem::read_symlink(entry.path(), ignored).string();
            constexpr std::string_view kSocket = "socket:[";
            if (target.starts_with(kSocket) &&
                inodes.contains(
                    target.substr(kSocket.size(), target.size() - kSocket.size() - 1))) {
                return true;
            }
        }
    }
    return false;
}

// Processor time that a program and its children have used.
std::chrono::milliseconds used_by(pid_t process) {
    const std::int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
    std::int64_t ticks = 0;
    for (const auto& [member, parent] : family_of(process)) {
        std::ifstream file(fmt::format("/proc/{}/stat", member));
        std::string text;
        std::getline(file, text);
        // Behind the name, which may hold anything: the 14th and 15th field are the 12th and 13th.
        std::istringstream words(text.substr(std::min(text.size(), text.rfind(')') + 1)));
        std::string skipped;
        for (int i = 0; i < 11; ++i) {
            words >> skipped;
        }
        std::int64_t user = 0;
        std::int64_t system = 0;
        words >> user >> system;
        ticks += user + system;
    }
    return std::chrono::milliseconds(ticks * 1000 / ticks_per_second);
}

int shell_status(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

// "was killed by signal 11 (Segmentation fault)", "ended with status 1".
std::string how_it_ended(int status) {
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        return fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
    }
    return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

fabric::Outcome<std::vector<ProgramSpec>> programs_of_words(std::span<const std::string> words) {
    std::vector<ProgramSpec> programs;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        if (equals == 0 || equals == std::string::npos || equals + 1 == word.size()) {
            return fabric::Failure(fmt::format("'{}' is not HOST=COMMAND", word));
        }
        programs.push_back({word.substr(0, equals), word.substr(equals + 1)});
    }
    return programs;
}

Programs::Programs(Server& server, const RunFolder& folder, std::vector<ProgramSpec> specs)
    : server_(server), folder_(folder), specs_(std::move(specs)) {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // whom a program leaves behind is ours to end
    for (const ProgramSpec& spec : specs_) {
        prefix_width_ = std::max(prefix_width_, spec.host.size());
    }
}

Programs::~Programs() {
    end_all();
}

int Programs::run(std::optional<std::chrono::milliseconds> limit) {
    const auto began = std::chrono::steady_clock::now();
    programs_.reserve(specs_.size());
    for (const ProgramSpec& spec : specs_) {
        if (EndSignals::count() > 0) {
            break;
        }
        start(spec);
        if (programs_.size() < specs_.size()) {
            wait_until_settled(programs_.back());
        }
    }
    constexpr int kAttendMs = 20;
    int signals = 0;
    auto asked_to_end = began;
    while (!all_ended()) {
        attend(kAttendMs);
        const auto now = std::chrono::steady_clock::now();
        if (signals == 0 && EndSignals::count() > 0) {
            signals = EndSignals::count();
            asked_to_end = now;
            pass_on_signal(EndSignals::first());
        } else if (signals > 0 &&
                   (EndSignals::count() > signals || now - asked_to_end > kEndWithin)) {
            end_all();
        } else if (signals == 0 && limit && now - began > *limit) {
            complain(fmt::format("the time limit of {} ms has passed; still running: {}",
                                 limit->count(), names_of_running()),
                     kTimedOut);
            is_late_ = true;
            end_all();
            return kTimedOut;
        }
    }
    end_all();
    return EndSignals::count() > 0 ? kSignalled + EndSignals::first()
                                   : first_failure_.value_or(is_output_lost_ ? kFailed : kPassed);
}

std::vector<int> Programs::statuses() const {
    std::vector<int> all;
    for (const Running& program : programs_) {
        all.push_back(program.status.value_or(kTimedOut));
    }
    return all;
}

void Programs::tell_if_unreachable(const std::string& command) {
    const std::string why = why_unreachable({"/bin/sh", "-c", command});
    if (!why.empty() && told_.insert(why).second) {
        complain(why, kPassed);
    }
}

void Programs::start(const ProgramSpec& spec) {
    tell_if_unreachable(spec.command);
    std::array<int, 2> output{};
    std::array<int, 2> errors{};
    if (pipe2(output.data(), O_CLOEXEC) != 0 || pipe2(errors.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe");
    }
    // Asked for here: a child that waits for the server looks like a program that waits.
    const std::string socket = folder_.socket();
    const Placement placement{socket, spec.host, ask_for_host(socket, spec.host).devices};
    const pid_t parent = getpid();
    const pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(kNotFound);
        }
        setpgid(0, 0);
        dup2(output[1], STDOUT_FILENO);
        dup2(errors[1], STDERR_FILENO);
        place_environment(placement);
        _exit(run_program({"/bin/sh", "-c", spec.command}));
    }
    server_.program_started(process, spec.host);
    setpgid(process, process);  // whichever of the two is first
    folder_.add_group(process);
    close(output[1]);
    close(errors[1]);
    Running program;
    program.host = spec.host;
    program.command = spec.command;
    program.process = process;
    program.output = output[0];
    program.errors = errors[0];
    programs_.push_back(program);
}

void Programs::wait_until_settled(const Running& program) {
    const auto began = std::chrono::steady_clock::now();
    auto asleep_since = began;
    auto idle_since = began;
    auto used_before = 0ms;
    ThreadWatch watch(program.process, program.process);
    while (!program.status && EndSignals::count() == 0 && used_by(program.process) < kSettleLimit &&
           std::chrono::steady_clock::now() - began < kSettleWallLimit) {
        constexpr int kLookMs = 5;
        attend(kLookMs);
        if (listens(program.process)) {
            return;
        }
        const ThreadState state = watch.look(0ns);
        const auto now = std::chrono::steady_clock::now();
        if (state != ThreadState::kAsleep || family_of(program.process).size() > 1) {
            asleep_since = now;  // a shell that waits for its program says nothing of that
        } else if (now - asleep_since > kAsleepFor) {
            return;
        }
        // One that meets the others through files, say: it looks for them and naps.
        const auto used = used_by(program.process);
        if (!server_.has_attached(program.process) ||
            used - used_before > (now - idle_since) / 2 + kAsleepFor) {
            idle_since = now;
            used_before = used;
        } else if (now - idle_since > kIdleFor) {
            return;
        }
    }
}

void Programs::attend(int timeout_ms) {
    std::vector<pollfd> looks;
    for (const Running& program : programs_) {
        looks.push_back({program.output, POLLIN, 0});  // negative ones are passed over
        looks.push_back({program.errors, POLLIN, 0});
    }
    poll(looks.data(), looks.size(), timeout_ms);
    for (std::size_t i = 0; i < programs_.size(); ++i) {
        Running& program = programs_[i];
        if (looks[2 * i].revents != 0) {
            pass_on(program, program.output, program.output_line, STDOUT_FILENO);
        }
        if (looks[2 * i + 1].revents != 0) {
            pass_on(program, program.errors, program.error_line, STDERR_FILENO);
        }
        if (!program.status) {
            look_after(program);
        }
    }
    lend_terminal();
}

void Programs::look_after(Running& program) {
    int status = 0;
    if (waitpid(program.process, &status, WNOHANG | WUNTRACED) != program.process) {
        return;
    }
    const bool has_terminal = terminal_.holder() == program.process;
    if (WIFSTOPPED(status)) {
        const int signal = WSTOPSIG(status);  // SIGSTOP: of a fault, or somebody's
        program.wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
        if (signal == SIGTSTP && has_terminal) {
            stop_with(program);
        }
        return;
    }
    program.status = shell_status(status);
    if (*program.status != 0 && !first_failure_) {
        first_failure_ = program.status;
    }
    if (*program.status != 0 && tells_failures_ && EndSignals::count() == 0) {
        complain(fmt::format("{} {}: {}", program.host, how_it_ended(status), program.command),
                 kFailed);
    }
    if (has_terminal) {
        terminal_.take_back();
        if (*program.status == kSignalled + SIGINT) {
            EndSignals::note(SIGINT);  // who pressed Ctrl-C meant all
        }
    }
}

// Ctrl-Z: the shell has its terminal back until it lets this process go on.
void Programs::stop_with(const Running& program) {
    terminal_.take_back();
    kill(getpid(), SIGSTOP);
    if (!terminal_.lend(program.process)) {
        kill(-program.process, SIGCONT);  // in the background
    }
}

void Programs::lend_terminal() {
    for (Running& program : programs_) {
        if (!program.status && program.wants_terminal && terminal_.lend(program.process)) {
            program.wants_terminal = false;
        }
    }
}

// Also to those that are stopped.
void Programs::pass_on_signal(int signal) const {
    for (const Running& program : programs_) {
        if (!program.status) {
            kill(-program.process, signal);
            kill(-program.process, SIGCONT);
        }
    }
}

// Whole lines, so that programs do not cut each other's in two.
void Programs::pass_on(Running& program, int& descriptor, std::string& line, int to) {
    std::array<char, 4096> buffer;
    const ssize_t got = read(descriptor, buffer.data(), buffer.size());
    if (got > 0) {
        line.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
        close(descriptor);
        descriptor = -1;
        line += line.empty() ? "" : "\n";
    }
    std::string whole;
    std::size_t end = 0;
    for (std::size_t begin = 0; (end = line.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
        whole += fmt::format("{:<{}} | {}\n", program.host, prefix_width_,
                             line.substr(begin, end - begin));
    }
    const std::size_t last = line.rfind('\n');
    line.erase(0, last == std::string::npos ? 0 : last + 1);
    for (std::size_t written = 0; written < whole.size();) {
        const ssize_t put = write(to, whole.data() + written, whole.size() - written);
        if (put < 0 && errno != EINTR) {
            complain_of_output(errno);
            return;
        }
        written += put > 0 ? static_cast<std::size_t>(put) : 0;
    }
}

// Once; the programs go on.
void Programs::complain_of_output(int error) {
    if (!is_output_lost_) {
        is_output_lost_ = true;
        complain(fmt::format("output of programs cannot be written: {}", std::strerror(error)),
                 kFailed);
    }
}

// "h0 (ib_send_lat), h1 (ib_send_lat 127.0.0.1)".
std::string Programs::names_of_running() const {
    std::string names;
    for (const Running& program : programs_) {
        if (!program.status) {
            names +=
                fmt::format("{}{} ({})", names.empty() ? "" : ", ", program.host, program.command);
        }
    }
    return names.empty() ? "what programs have left in the background" : names;
}

bool Programs::all_ended() const {
    return std::all_of(programs_.begin(), programs_.end(), [](const Running& program) {
        return program.status && program.output < 0 && program.errors < 0;
    });
}

void Programs::pass_on_rest() {
    for (Running& program : programs_) {
        for (auto [descriptor, line, to] :
             {std::tuple(&program.output, &program.output_line, STDOUT_FILENO),
              std::tuple(&program.errors, &program.error_line, STDERR_FILENO)}) {
            pollfd look{*descriptor, POLLIN, 0};
            while (*descriptor >= 0 && poll(&look, 1, 0) > 0) {
                pass_on(program, *descriptor, *line, to);
            }
        }
    }
}

// Those that have left their program's group, or outlived it, too. One that is busy in the kernel
// ends later.
void Programs::kill_descendants() const {
    constexpr int kRounds = 100;
    for (int round = 0; round < kRounds; ++round) {
        bool any = false;
        for (const auto& [process, parent] : family_of(getpid())) {
            if (process != getpid() && !folder_.is_guard(process)) {
                any = true;
                kill(process, SIGKILL);
                waitpid(process, nullptr, WNOHANG);  // if it is a child of this process by now
            }
        }
        if (!any) {
            return;
        }
        std::this_thread::sleep_for(1ms);
    }
}

void Programs::end_all() {
    for (Running& program : programs_) {
        if (!program.status) {
            kill(-program.process, SIGKILL);
            int status = 0;
            waitpid(program.process, &status, 0);
            program.status = shell_status(status);
        }
    }
    terminal_.take_back();
    kill_descendants();
    pass_on_rest();
    for (Running& program : programs_) {
        for (int* descriptor : {&program.output, &program.errors}) {
            if (*descriptor >= 0) {
                close(*descriptor);
                *descriptor = -1;
            }
        }
    }
}

}  // namespace simverbs::cli
