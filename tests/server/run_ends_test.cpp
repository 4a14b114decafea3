// How `simverbs run` ends: by a signal, by a signal that its programs ignore, killed; on a
// terminal. Afterwards nothing of it is left, no process and no file.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Processes whose environment says so; zombies have none.
std::vector<pid_t> processes_with(const std::string& variable) {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
            continue;
        }
        std::ifstream file(entry.path() / "environ");
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        if (text.find(variable) != std::string::npos) {
            found.push_back(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)));
        }
    }
    return found;
}

// A run whose programs write a line each once they are there.
class StartedRun {
  public:
    // Commands of h0, h1, ...; each must write a line, then stay.
    explicit StartedRun(const std::vector<std::string>& commands) {
        std::vector<std::string> words{SIMVERBS_COMMAND, "run", "star:3"};
        for (std::size_t i = 0; i < commands.size(); ++i) {
            words.push_back("h" + std::to_string(i) + "=" + commands[i]);
        }
        EXPECT_NE(mkdtemp(folder_.data()), nullptr);
        fs::create_directory(folder_ + "/tmp");
        const std::string fifo = folder_ + "/fifo";
        constexpr mode_t kMode = 0600;
        EXPECT_EQ(mkfifo(fifo.c_str(), kMode), 0);
        process_ = Process(words,
                           {"SIMVERBS_TEST_MARK=" + mark_, "SIMVERBS_TEST_FIFO=" + fifo,
                            "TMPDIR=" + folder_ + "/tmp"},
                           false, folder_ + "/errors");
        for (std::size_t i = 0; i < commands.size(); ++i) {
            process_.hear();
        }
    }
    ~StartedRun() {
        for (const pid_t left : processes_with("SIMVERBS_TEST_MARK=" + mark_)) {
            kill(left, SIGKILL);
        }
        fs::remove_all(folder_);
    }
    StartedRun(const StartedRun&) = delete;
    StartedRun& operator=(const StartedRun&) = delete;

    Process& process() { return process_; }
    [[nodiscard]] std::string errors() const {
        std::ifstream file(folder_ + "/errors");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    // Waits for a while: whoever cleans up may be a process of its own.
    [[nodiscard]] bool has_left_nothing() const {
        for (int i = 0; i < 1000; ++i) {
            const bool any = !processes_with("SIMVERBS_TEST_MARK=" + mark_).empty() ||
                             !fs::is_empty(folder_ + "/tmp");
            if (!any) {
                return true;
            }
            std::this_thread::sleep_for(10ms);
        }
        return false;
    }

  private:
    std::string mark_ = std::to_string(getpid()) + "." + std::to_string(++s_runs);
    std::string folder_ = fs::temp_directory_path() / "simverbs-test-XXXXXX";
    Process process_;
    static inline int s_runs = 0;
};

// The next one is started once one sleeps without a time limit, and has no children: so the last
// one alone, a group of three, has.
const std::vector<std::string> kPrograms = {
    "echo there; exec cat $SIMVERBS_TEST_FIFO",
    "(setsid sleep 300 >/dev/null 2>&1 &); echo there; exec cat $SIMVERBS_TEST_FIFO",
    "echo there; sh -c 'sleep 300; true'; true",
};

class RunEnds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(By, RunEnds, testing::Values(SIGTERM, SIGINT, SIGHUP),
                         [](const auto& each) { return std::string(sigabbrev_np(each.param)); });

TEST_P(RunEnds, WithEverythingBySignals) {
    StartedRun run(kPrograms);
    run.process().kill(GetParam());
    EXPECT_EQ(run.process().end(), 128 + GetParam());
    EXPECT_NE(run.errors().find("of virtual time, run digest"), std::string::npos) << run.errors();
    EXPECT_TRUE(run.has_left_nothing());
}

TEST_P(RunEnds, ThoughProgramsIgnoreSignals) {
    StartedRun run({"trap '' TERM INT HUP; echo there; exec cat $SIMVERBS_TEST_FIFO",
                    "trap '' TERM INT HUP; echo there; sleep 300 & wait; wait"});
    run.process().kill(GetParam());
    EXPECT_EQ(run.process().end(), 128 + GetParam());
    EXPECT_TRUE(run.has_left_nothing());
}

// The last words of a program that is asked to end are still passed on.
TEST_P(RunEnds, AfterProgramsHaveSaidGoodbye) {
    StartedRun run(
        {"trap 'echo goodbye; exit 3' TERM INT HUP; echo there; while :; do sleep 0.1; done"});
    run.process().kill(GetParam());
    EXPECT_EQ(run.process().hear(), "h0 | goodbye");
    EXPECT_EQ(run.process().end(), 128 + GetParam());
    EXPECT_TRUE(run.has_left_nothing());
}

TEST(RunEnds, AtOnceByASecondSignal) {
    StartedRun run({"trap '' TERM; echo there; while :; do sleep 0.1; done"});
    run.process().kill(SIGTERM);
    std::this_thread::sleep_for(100ms);
    run.process().kill(SIGTERM);
    EXPECT_EQ(run.process().end(), 128 + SIGTERM);
    EXPECT_TRUE(run.has_left_nothing());
}

// Nobody of it is left to do so but its guard. A program that has left its group stays.
TEST(RunEnds, WithEverythingWhenItIsKilled) {
    for (int i = 0; i < 5; ++i) {
        StartedRun run({kPrograms[0], kPrograms[2]});
        run.process().kill(i == 4 ? SIGABRT : SIGKILL);
        EXPECT_EQ(run.process().end(), 128 + (i == 4 ? SIGABRT : SIGKILL));
        EXPECT_TRUE(run.has_left_nothing());
    }
}

TEST(RunEnds, WithWhatProgramsLeftInTheBackground) {
    StartedRun run(
        {"(sleep 300 >/dev/null 2>&1 &); (setsid sleep 300 >/dev/null 2>&1 &); echo there"});
    EXPECT_EQ(run.process().end(), 0);
    EXPECT_TRUE(run.has_left_nothing());
}

TEST(RunEnds, WithEverythingWhenTheTimeLimitPasses) {
    StartedRun run({"echo there; sh -c 'sleep 300; true'; true"});
    Process limited({SIMVERBS_COMMAND, "run", "--time-limit", "1s", "star:2", "h0=sleep 300"}, {});
    EXPECT_EQ(limited.end(), 124);
    EXPECT_FALSE(run.process().ended());
    run.process().kill(SIGTERM);
    EXPECT_EQ(run.process().end(), 128 + SIGTERM);
    EXPECT_TRUE(run.has_left_nothing());
}

TEST(RunEnds, AKilledProgramIsNotTheEndOfTheOthers) {
    StartedRun run({"echo there; kill -9 $$", "echo there; sleep 0.5; echo still; exit 0"});
    EXPECT_EQ(run.process().hear(), "h1 | still");
    EXPECT_EQ(run.process().end(), 128 + SIGKILL);
    EXPECT_TRUE(run.has_left_nothing());
}

TEST(RunEnds, BackgroundWorldsEndOnHangup) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        ServedWorld world("star:2");
        const std::string socket = world.socket();
        world.server().kill(signal);
        EXPECT_EQ(world.server().end(), 128 + signal);
        EXPECT_FALSE(fs::exists(socket));
    }
}

// `simverbs run` as a shell starts it in the foreground of a terminal.
class OnTerminal : public testing::Test {
  protected:
    void start(const std::vector<std::string>& commands) {
        terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(terminal_, 0);
        ASSERT_EQ(grantpt(terminal_) | unlockpt(terminal_), 0);
        const std::string name = ptsname(terminal_);
        std::vector<std::string> words{SIMVERBS_COMMAND, "run", "star:3"};
        for (std::size_t i = 0; i < commands.size(); ++i) {
            words.push_back("h" + std::to_string(i) + "=" + commands[i]);
        }
        process_ = fork();
        if (process_ == 0) {
            setsid();
            const int own = open(name.c_str(), O_RDWR);
            ioctl(own, TIOCSCTTY, 0);
            for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
                dup2(own, standard);
            }
            std::vector<char*> arguments;
            arguments.reserve(words.size() + 1);
            for (std::string& word : words) {
                arguments.push_back(word.data());
            }
            arguments.push_back(nullptr);
            execv(arguments[0], arguments.data());
            _exit(127);
        }
    }
    void type(const std::string& text) const {
        EXPECT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    // Reads on until the terminal has shown it.
    bool shows(const std::string& words) {
        const auto began = std::chrono::steady_clock::now();
        while (shown_.find(words) == std::string::npos) {
            pollfd look{terminal_, POLLIN, 0};
            std::array<char, 512> buffer;
            if (std::chrono::steady_clock::now() - began > kPatience || poll(&look, 1, 100) < 0) {
                return false;
            }
            if ((look.revents & POLLIN) != 0) {
                const ssize_t got = read(terminal_, buffer.data(), buffer.size());
                shown_.append(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
            } else if (look.revents != 0) {
                return false;
            }
        }
        return true;
    }
    int end() {
        shows("of virtual time, run digest");
        int status = 0;
        EXPECT_EQ(waitpid(process_, &status, 0), process_);
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    void TearDown() override {
        if (process_ > 0) {
            kill(process_, SIGKILL);
            waitpid(process_, nullptr, 0);
        }
        close(terminal_);
    }

    int terminal_ = -1;
    pid_t process_ = -1;
    std::string shown_;
};

TEST_F(OnTerminal, ProgramsThatReadGetTheLinesOneAfterTheOther) {
    start({"read a; echo first $a", "read b; echo second $b"});
    type("one\n");
    EXPECT_TRUE(shows("first one")) << shown_;
    type("two\n");
    EXPECT_TRUE(shows("second two")) << shown_;
    EXPECT_EQ(end(), 0);
}

TEST_F(OnTerminal, ControlCEndsAllPrograms) {
    start({"echo there; sleep 300", "echo here; sleep 300"});
    EXPECT_TRUE(shows("there") && shows("here")) << shown_;
    type("\x03");
    EXPECT_EQ(end(), 128 + SIGINT) << shown_;
}

TEST_F(OnTerminal, ControlCEndsAllThoughOneReads) {
    start({"echo there; read a", "echo here; sleep 300"});
    EXPECT_TRUE(shows("there") && shows("here")) << shown_;
    std::this_thread::sleep_for(300ms);  // until it reads
    type("\x03");
    EXPECT_EQ(end(), 128 + SIGINT) << shown_;
}

}  // namespace
}  // namespace server_test
