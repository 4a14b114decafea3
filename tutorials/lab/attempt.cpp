#include "tutorials/lab/attempt.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tutorials/lab/supervisor.hpp"

namespace simverbs::lab {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// The words of simverbs when a program waits for what cannot come; it may still give up by itself.
constexpr std::array<std::string_view, 3> kGoesNowhere = {
    "simverbs: everyone waits and no event is left", "simverbs: a million events came while nobody",
    "simverbs: events_not_acknowledged:"};
constexpr std::array<std::string_view, 1> kReport = {"simverbs: asked for, at"};
constexpr auto kPatience = 700ms;  // from then on
constexpr auto kReportTime = 1s;   // a program that never calls simverbs does not report
constexpr auto kAbortTime = 5s;
constexpr int kEndTime = 10'000;  // ms, for the supervisor to end all

bool says_one_of(std::span<const std::string_view> all, std::string_view text) {
    return std::any_of(all.begin(), all.end(), [text](std::string_view words) {
        return text.find(words) != std::string_view::npos;
    });
}

std::vector<std::string> environment_of(const Command& command) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const bool is_set =
            std::any_of(command.environment.begin(), command.environment.end(),
                        [text](const auto& own) { return text.starts_with(own.first + "="); });
        if (!is_set && !text.starts_with("SIMVERBS_")) {
            all.emplace_back(text);
        }
    }
    for (const auto& [name, value] : command.environment) {
        all.push_back(fmt::format("{}={}", name, value));
    }
    return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

class Pipe {
  public:
    Pipe() {
        if (pipe2(ends_.data(), O_CLOEXEC) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
    }
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    [[nodiscard]] int reader() const { return ends_[0]; }
    [[nodiscard]] int writer() const { return ends_[1]; }
    void close_writer() { close_end(1); }
    [[nodiscard]] bool is_open() const { return ends_[0] >= 0; }

    // Reads what there is; closes at the end.
    void read_into(std::string& text) {
        std::array<char, 4096> buffer;
        const ssize_t got = read(ends_[0], buffer.data(), buffer.size());
        if (got > 0) {
            text.append(buffer.data(), std::min(static_cast<std::size_t>(got),
                                                kMostOutput - std::min(kMostOutput, text.size())));
        } else if (got == 0 || errno != EINTR) {
            close_end(0);
        }
    }

  private:
    void close_end(std::size_t end) {
        if (ends_[end] >= 0) {
            close(ends_[end]);
            ends_[end] = -1;
        }
    }

    std::array<int, 2> ends_{-1, -1};
};

// A program, by its supervisor.
class Child {
  public:
    explicit Child(const Command& command) : interruption_(command.interruption) {
        std::vector<std::string> words = command.words;
        std::vector<std::string> environment = environment_of(command);
        const std::vector<char*> arguments = pointers_to(words);
        const std::vector<char*> variables = pointers_to(environment);
        const pid_t self = getpid();
        supervisor_ = fork();
        if (supervisor_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (supervisor_ == 0) {
            supervise({command.folder.empty() ? nullptr : command.folder.c_str(), arguments.data(),
                       variables.data(), output_.writer(), errors_.writer(), stop_.reader(),
                       reports_.writer(), self});
        }
        output_.close_writer();
        errors_.close_writer();
        reports_.close_writer();
        gone_ = static_cast<int>(syscall(SYS_pidfd_open, supervisor_, 0));
        if (gone_ < 0) {
            const int error = errno;
            kill(supervisor_, SIGKILL);
            waitpid(supervisor_, nullptr, 0);
            throw std::system_error(error, std::generic_category(), "pidfd_open");
        }
    }
    ~Child() {
        end_all();
        close(gone_);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Reads until the program has ended, `until` has come, or `words` stand in its errors.
    void attend(Clock::time_point until, std::span<const std::string_view> words,
                Finished& finished) {
        while (!has_ended() && !interrupted_ && Clock::now() < until) {
            look(until, finished);
            if (says_one_of(words, finished.errors)) {
                break;
            }
        }
    }
    // Patience with a program that may give up by itself.
    void attend(Clock::time_point until, Finished& finished) { attend(until, {}, finished); }

    // Returns true if the program handles that signal itself (proc(5)).
    [[nodiscard]] bool catches(int signal) const {
        std::ifstream status(fmt::format("/proc/{}/status", process_));
        for (std::string word; status >> word;) {
            if (word == "SigCgt:") {
                std::uint64_t caught = 0;
                status >> std::hex >> caught;
                return (caught >> (signal - 1) & 1U) != 0;
            }
        }
        return false;
    }
    // Returns true if it is in sleep(3) or its like (proc(5), syscall).
    [[nodiscard]] bool sleeps_by_the_clock() const {
        std::ifstream file(fmt::format("/proc/{}/syscall", process_));
        std::int64_t call = -1;
        file >> call;
        return call == SYS_nanosleep || call == SYS_clock_nanosleep;
    }
    // Returns true if it sleeps, and has done little else since it began: it is no endless loop.
    [[nodiscard]] bool sleeps(std::chrono::milliseconds since_begin) const {
        std::ifstream file(fmt::format("/proc/{}/stat", process_));
        std::string text(std::istreambuf_iterator<char>(file), {});
        std::istringstream fields(text.substr(std::min(text.rfind(')'), text.size() - 1) + 1));
        char state = 0;
        std::array<std::int64_t, 12> numbers{};  // of proc(5), the last two: utime and stime
        fields >> state;
        for (std::int64_t& number : numbers) {
            fields >> number;
        }
        const std::int64_t ticks = numbers[10] + numbers[11];
        const std::chrono::milliseconds used(ticks * 1000 / sysconf(_SC_CLK_TCK));
        constexpr int kLittle = 6;  // a sixth of the time
        return state == 'S' && used * kLittle < since_begin;
    }
    void send(int signal) const {
        if (process_ > 0) {
            kill(process_, signal);
        }
    }
    // Ends the program and what it started.
    void end_all() {
        if (!has_ended()) {
            static_cast<void>(write(stop_.writer(), "", 1) == 1);
            pollfd look{gone_, POLLIN, 0};
            poll(&look, 1, kEndTime);
            take_reports();
            end_supervisor();
        }
    }
    [[nodiscard]] bool has_ended() const { return ending_.has_value(); }
    [[nodiscard]] bool is_interrupted() const { return interrupted_; }
    // Once it has ended.
    [[nodiscard]] Ending ending() const { return ending_.value_or(Ending{}); }

  private:
    using Looks = std::array<pollfd, 5>;

    [[nodiscard]] Looks looks() const {
        return {{{output_.reader(), POLLIN, 0},
                 {errors_.reader(), POLLIN, 0},
                 {reports_.reader(), POLLIN, 0},
                 {gone_, POLLIN, 0},
                 {interruption_, POLLIN, 0}}};
    }
    // Waits for one of them.
    void look(Clock::time_point until, Finished& finished) {
        Looks looks = this->looks();
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        poll(looks.data(), looks.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
        take(looks, finished);
        interrupted_ = looks[4].revents != 0;
        if (looks[2].revents != 0) {
            take_reports();
        }
        if (looks[3].revents != 0 && !has_ended()) {
            take_reports();
            end_supervisor();
        }
        if (has_ended()) {
            drain(finished);
        }
    }
    // Reads what the supervisor has said by now.
    void take_reports() {
        SupervisorReport report;
        pollfd look{reports_.reader(), POLLIN, 0};
        while (!has_ended() && poll(&look, 1, 0) == 1 &&
               read(look.fd, &report, sizeof report) == sizeof report) {
            switch (report.kind) {
                case SupervisorReport::Kind::kStarting:
                    process_ = report.number;
                    break;
                case SupervisorReport::Kind::kNotStarted:
                    not_started_ = report.number;
                    break;
                case SupervisorReport::Kind::kEnded:
                    ending_ = ending_of(report.number);
                    end_supervisor();
            }
        }
    }
    [[nodiscard]] Ending ending_of(int status) const {
        if (not_started_ != 0) {
            return {Ending::Kind::kNotStarted, not_started_};
        }
        return WIFSIGNALED(status) ? Ending{Ending::Kind::kKilledBySignal, WTERMSIG(status)}
                                   : Ending{Ending::Kind::kExited, WEXITSTATUS(status)};
    }
    // The supervisor has nothing left to do, or does nothing any more.
    void end_supervisor() {
        if (supervisor_ > 0) {
            kill(supervisor_, SIGKILL);
            if (!ending_ && process_ > 0) {
                kill(-process_, SIGKILL);
            }
            waitpid(supervisor_, nullptr, 0);
            supervisor_ = -1;
        }
        if (!ending_) {
            ending_ = {Ending::Kind::kKilledSupervisor, 0};
        }
    }
    void take(const Looks& looks, Finished& finished) {
        if (looks[0].revents != 0) {
            output_.read_into(finished.output);
        }
        if (looks[1].revents != 0) {
            errors_.read_into(finished.errors);
        }
    }
    // Reads what an ended program left in the pipes.
    void drain(Finished& finished) {
        while (output_.is_open() || errors_.is_open()) {
            Looks looks = this->looks();
            if (poll(looks.data(), 2, 0) <= 0) {
                return;
            }
            take(looks, finished);
        }
    }

    Pipe output_;
    Pipe errors_;
    Pipe reports_;
    Pipe stop_;
    int interruption_;
    int gone_ = -1;          // readable when the supervisor has ended
    pid_t supervisor_ = -1;  // -1: ended
    pid_t process_ = -1;     // the program; -1: not started yet
    int not_started_ = 0;    // errno
    std::optional<Ending> ending_;
    bool interrupted_ = false;
};

// Returns $CC, which may have options as it may for make(1), or cc.
std::vector<std::string> compiler() {
    const char* const chosen = std::getenv("CC");
    std::istringstream text(chosen == nullptr ? "" : chosen);
    std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
    return words.empty() ? std::vector<std::string>{"cc"} : words;
}

// Has a program that would not end say what it waits for, unless it has, and where it is.
void stop(Child& child, bool has_reported, Finished& finished) {
    if (!has_reported && child.catches(SIGUSR2)) {
        child.send(SIGUSR2);
        child.attend(Clock::now() + kReportTime, kReport, finished);  // its traces are on the disk
    }
    if (child.catches(SIGABRT)) {
        child.send(SIGABRT);
        child.attend(Clock::now() + kAbortTime, finished);
    }
    child.end_all();
}

}  // namespace

Finished run(const Command& command) {
    Finished finished;
    Child child(command);
    const auto begin = Clock::now();
    const auto until = begin + command.limit;
    child.attend(until, kGoesNowhere, finished);
    const bool goes_nowhere = says_one_of(kGoesNowhere, finished.errors);
    if (goes_nowhere) {
        child.attend(std::min(until, Clock::now() + kPatience), finished);
    }
    if (child.has_ended()) {
        finished.ending = child.ending();
    } else if (!child.is_interrupted()) {
        const auto passed =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
        const Ending::Kind kind = goes_nowhere                  ? Ending::Kind::kStuck
                                  : !child.sleeps(passed)       ? Ending::Kind::kTimedOut
                                  : child.sleeps_by_the_clock() ? Ending::Kind::kAsleep
                                                                : Ending::Kind::kStuck;
        stop(child, goes_nowhere, finished);
        finished.ending = {kind, 0};
    }
    if (child.is_interrupted()) {
        finished.ending = {Ending::Kind::kInterrupted, 0};
    }
    return finished;
}

std::vector<std::string> compiler_words(const Toolbox& toolbox, const Rubric& rubric,
                                        const std::string& source, const std::string& program) {
    std::vector<std::string> words = compiler();
    words.insert(words.end(),
                 {"-std=gnu11",
                  "-gdwarf-4",  // addr2line of Debian 12 takes a header of DWARF 5 for the source
                  "-Wall", "-Wextra", source, toolbox.tutorials + "/lab_ending.c", "-o", program,
                  "-I" + toolbox.tutorials});
    for (const std::string& folder : toolbox.headers) {
        words.push_back("-I" + folder);
    }
    for (const std::string& folder : toolbox.libraries) {
        words.push_back("-L" + folder);
        words.push_back("-Wl,-rpath," + folder);
    }
    if (rubric.uses_rdma_cm) {
        // Nothing in the program refers to the library, which stands before libc all the same.
        words.insert(words.end(), {"-Wl,--no-as-needed", "-lsimverbs-rdmacm", "-lrdmacm"});
    }
    words.emplace_back("-lsimverbs");
    return words;
}

Environment program_environment(const Toolbox& toolbox, const Rubric& rubric,
                                const ProgramFiles& files) {
    Environment environment = rubric.environment;
    environment.emplace_back("SIMVERBS_TOPOLOGY", rubric.topology);
    environment.emplace_back("SIMVERBS_TRACE", files.trace);
    environment.emplace_back("SIMVERBS_DIGEST", files.digest);
    environment.emplace_back("SIMVERBS_TRACE_FLUSH", "1");
    environment.emplace_back("SIMVERBS_WARN", "1");
    environment.emplace_back("LD_LIBRARY_PATH",
                             fmt::format("{}", fmt::join(toolbox.libraries, ":")));
    environment.emplace_back("PYTHONPATH", fmt::format("{0}:{0}/python", toolbox.tutorials));
    environment.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
    environment.emplace_back("PYTHONUNBUFFERED", "1");
    environment.emplace_back("PYTHONFAULTHANDLER", "1");
    environment.emplace_back("LAB_ENDING", files.notes);
    return environment;
}

}  // namespace simverbs::lab
