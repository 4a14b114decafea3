// Programs that are expected: what is said of one before anybody has looked at it, while it sleeps,
// and when it has ended.
#include "simverbs/server/expected_programs.hpp"

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simverbs {
namespace {

using std::chrono::nanoseconds;

// A process that sleeps until it is killed.
class Sleeper {
  public:
    Sleeper() : process_(fork()) {
        if (process_ == 0) {
            while (true) {
                pause();
            }
        }
    }
    ~Sleeper() { end(); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    void end() {
        if (process_ > 0) {
            kill(process_, SIGKILL);
            waitpid(process_, nullptr, 0);
            process_ = -1;
        }
    }
    [[nodiscard]] pid_t process() const { return process_; }

  private:
    pid_t process_;
};

TEST(ExpectedPrograms, OneThatHasJustStartedRunsUntilSomebodyLooks) {
    ExpectedPrograms programs;
    programs.expect(1);
    EXPECT_EQ(programs.of_all().state, ThreadState::kRuns) << "it is to be started";
    Sleeper sleeper;
    programs.started(sleeper.process(), "h0");
    EXPECT_EQ(programs.of_all().state, ThreadState::kRuns);
    EXPECT_EQ(programs.beside(getpid(), "h0").state, ThreadState::kRuns);
    EXPECT_EQ(programs.beside(getpid(), "h1").state, ThreadState::kEnded) << "none is there";
}

TEST(ExpectedPrograms, OneIsAsleepWhenLooksAgreeAndGoneWhenItHasEnded) {
    ExpectedPrograms programs;
    Sleeper sleeper;
    programs.started(sleeper.process(), "h0");
    constexpr int kLooks = 10'000;
    for (int i = 0; i < kLooks && programs.of_all().state == ThreadState::kRuns; ++i) {
        programs.look({}, nanoseconds::zero());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(programs.of_all().state, ThreadState::kAsleep);
    EXPECT_FALSE(programs.empty());
    sleeper.end();
    programs.look({}, nanoseconds::zero());
    EXPECT_TRUE(programs.empty());
}

}  // namespace
}  // namespace simverbs
