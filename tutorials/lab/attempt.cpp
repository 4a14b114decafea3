#include "tutorials/lab/attempt.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simverbs::lab {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kMostOutput = std::size_t{1} << 20;
// What simverbs says when a program waits for what cannot come; it may still give up by itself.
constexpr std::array<std::string_view, 3> kGoesNowhere = {
    "simverbs: everyone waits and no event is left", "simverbs: a million events came while nobody",
    "simverbs: events_not_acknowledged:"};
constexpr std::string_view kReport = "simverbs: asked for, at";
constexpr auto kPatience = 700ms;  // from then on
constexpr auto kReportTime = 3s;
constexpr int kCannotExecute = 127;

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

    // What there is; closes at the end.
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

class Child {
  public:
    explicit Child(const Command& command) {
        std::vector<std::string> words = command.words;
        std::vector<std::string> environment = environment_of(command);
        const std::vector<char*> arguments = pointers_to(words);
        const std::vector<char*> variables = pointers_to(environment);
        process_ = fork();
        if (process_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (process_ == 0) {
            become(command, arguments.data(), variables.data());
        }
        setpgid(process_, process_);
        output_.close_writer();
        errors_.close_writer();
    }
    ~Child() {
        if (!status_) {
            end();
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Reads until the program has ended or `until` has come; true when it has ended.
    bool attend(Clock::time_point until, Finished& finished) {
        while (!status_ && Clock::now() < until) {
            std::array<pollfd, 2> looks{
                {{output_.reader(), POLLIN, 0}, {errors_.reader(), POLLIN, 0}}};
            constexpr int kLookMs = 10;
            poll(looks.data(), looks.size(), kLookMs);
            take(looks, finished);
            int status = 0;
            if (waitpid(process_, &status, WNOHANG) == process_) {
                status_ = status;
                drain(finished);
                return true;
            }
            if (!said_nowhere_ && says_nowhere(finished.errors)) {
                said_nowhere_ = true;
                until = std::min(until, Clock::now() + kPatience);
            }
            if (finished.errors.find(kReport) != std::string::npos) {
                break;  // its traces are on the disk
            }
        }
        return status_.has_value();
    }
    void ask_for_report() const { kill(process_, SIGUSR2); }
    void end() {
        kill(-process_, SIGKILL);
        int status = 0;
        waitpid(process_, &status, 0);
        status_ = status;
    }
    [[nodiscard]] int status() const { return status_.value_or(0); }

  private:
    [[noreturn]] void become(const Command& command, char* const* arguments,
                             char* const* variables) const {
        setpgid(0, 0);
        dup2(output_.writer(), STDOUT_FILENO);
        dup2(errors_.writer(), STDERR_FILENO);
        const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
        if (command.folder.empty() || chdir(command.folder.c_str()) == 0) {
            execvpe(arguments[0], arguments, variables);
        }
        _exit(kCannotExecute);
    }

    static bool says_nowhere(std::string_view errors) {
        return std::any_of(kGoesNowhere.begin(), kGoesNowhere.end(),
                           [errors](std::string_view words) {
                               return errors.find(words) != std::string_view::npos;
                           });
    }
    void take(const std::array<pollfd, 2>& looks, Finished& finished) {
        if (looks[0].revents != 0) {
            output_.read_into(finished.output);
        }
        if (looks[1].revents != 0) {
            errors_.read_into(finished.errors);
        }
    }
    // What an ended program left in the pipes; what its children still write is not waited for.
    void drain(Finished& finished) {
        for (;;) {
            std::array<pollfd, 2> looks{
                {{output_.reader(), POLLIN, 0}, {errors_.reader(), POLLIN, 0}}};
            if ((!output_.is_open() && !errors_.is_open()) ||
                poll(looks.data(), looks.size(), 0) <= 0) {
                return;
            }
            take(looks, finished);
        }
    }

    Pipe output_;
    Pipe errors_;
    pid_t process_ = -1;
    std::optional<int> status_;
    bool said_nowhere_ = false;
};

}  // namespace

Finished run(const Command& command) {
    Finished finished;
    Child child(command);
    if (!child.attend(Clock::now() + command.limit, finished)) {
        child.ask_for_report();
        child.attend(Clock::now() + kReportTime, finished);
        child.end();
        finished.ending = {Ending::Kind::kHung, 0};
    } else if (WIFSIGNALED(child.status())) {
        finished.ending = {Ending::Kind::kKilledBySignal, WTERMSIG(child.status())};
    } else {
        finished.ending = {Ending::Kind::kExited, WEXITSTATUS(child.status())};
    }
    return finished;
}

std::vector<std::string> compiler_words(const Toolbox& toolbox, const std::string& source,
                                        const std::string& program) {
    const char* const chosen = std::getenv("CC");
    std::vector<std::string> words{chosen == nullptr || *chosen == '\0' ? "cc" : chosen,
                                   "-std=gnu11",
                                   "-g",
                                   "-Wall",
                                   "-Wextra",
                                   source,
                                   "-o",
                                   program,
                                   "-I" + toolbox.tutorials};
    for (const std::string& folder : toolbox.headers) {
        words.push_back("-I" + folder);
    }
    for (const std::string& folder : toolbox.libraries) {
        words.push_back("-L" + folder);
        words.push_back("-Wl,-rpath," + folder);
    }
    words.emplace_back("-lsimverbs");
    return words;
}

Environment program_environment(const Toolbox& toolbox, const Rubric& rubric,
                                const std::string& trace_file) {
    Environment environment = rubric.environment;
    environment.emplace_back("SIMVERBS_TOPOLOGY", rubric.topology);
    environment.emplace_back("SIMVERBS_TRACE", trace_file);
    environment.emplace_back("SIMVERBS_TRACE_FLUSH", "1");
    environment.emplace_back("SIMVERBS_WARN", "1");
    environment.emplace_back("LD_LIBRARY_PATH",
                             fmt::format("{}", fmt::join(toolbox.libraries, ":")));
    environment.emplace_back("PYTHONPATH", toolbox.tutorials);
    environment.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
    return environment;
}

}  // namespace simverbs::lab
