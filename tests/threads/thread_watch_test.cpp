// Threads of this process that sleep, spin and end, looked at through /proc. No test depends on how
// long anything takes: a state is waited for, and ctest has the time limit.
#include "simverbs/threads/thread_watch.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace simverbs {
namespace {

using namespace std::chrono_literals;

// A thread that runs `body` until the end of the test.
class Watched {
  public:
    template <class Body>
    explicit Watched(Body body)
        : thread_([this, body] {
              id_ = gettid();
              body();
          }) {
        while (id_ == 0) {
            std::this_thread::yield();
        }
    }
    ~Watched() { join(); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

    void join() {
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    [[nodiscard]] pid_t id() const { return id_; }

  private:
    std::atomic<pid_t> id_{0};
    std::thread thread_;
};

void look_until(ThreadWatch& watch, ThreadState wanted, std::chrono::nanoseconds spin_limit = 0ns) {
    while (watch.look(spin_limit) != wanted) {
    }
}

class Pipe {
  public:
    Pipe() { EXPECT_EQ(pipe(ends_), 0); }
    ~Pipe() {
        close(ends_[0]);
        close(ends_[1]);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    void wait() const {
        char byte = 0;
        EXPECT_EQ(read(ends_[0], &byte, 1), 1);
    }
    void wait_for(std::chrono::milliseconds time) const {
        pollfd entry{ends_[0], POLLIN, 0};
        poll(&entry, 1, static_cast<int>(time.count()));
    }
    void wake() const { EXPECT_EQ(write(ends_[1], "", 1), 1); }

  private:
    int ends_[2] = {-1, -1};
};

TEST(ThreadWatch, FindsAThreadAsleepUntilItIsWoken) {
    const Pipe pipe;
    Watched thread([&pipe] { pipe.wait(); });
    ThreadWatch watch(getpid(), thread.id());
    look_until(watch, ThreadState::kAsleep);
    pipe.wake();
    thread.join();
    look_until(watch, ThreadState::kEnded);
    EXPECT_TRUE(watch.has_ended());
}

TEST(ThreadWatch, BelievesNoSingleLook) {
    const Pipe pipe;
    const Watched thread([&pipe] { pipe.wait(); });
    ThreadWatch watch(getpid(), thread.id());
    look_until(watch, ThreadState::kAsleep);
    watch.forget();
    EXPECT_EQ(watch.look(0ns), ThreadState::kRuns);
    look_until(watch, ThreadState::kAsleep);
    pipe.wake();
}

TEST(ThreadWatch, TellsASleepWithATimeLimit) {
    const Pipe pipe;
    const Watched thread([&pipe] { pipe.wait_for(1h); });
    ThreadWatch watch(getpid(), thread.id());
    look_until(watch, ThreadState::kAsleepForTime);
    pipe.wake();
}

TEST(ThreadWatch, FindsASpinnerAfterItsLimitOfProcessorTime) {
    std::atomic<bool> stop{false};
    {
        const Watched thread([&stop] {
            while (!stop) {
            }
        });
        ThreadWatch watch(getpid(), thread.id());
        look_until(watch, ThreadState::kSpins, 20ms);
        EXPECT_GE(watch.spent(), 20ms);
        watch.forget();
        EXPECT_EQ(watch.look(20ms), ThreadState::kRuns) << "it was in the library";
        stop = true;
    }
}

TEST(ThreadWatch, AThreadThatHasActedOrSleptBeginsToSpinAnew) {
    constexpr auto kLimitOfOneThatHasSpun = 2ms;
    const Pipe pipe;
    std::atomic<bool> sleeps{false};
    std::atomic<bool> stop{false};
    {
        const Watched thread([&] {
            while (!sleeps) {
            }
            pipe.wait();
            while (!stop) {
            }
        });
        ThreadWatch watch(getpid(), thread.id());
        look_until(watch, ThreadState::kSpins, 20ms);
        watch.may_have_acted();
        look_until(watch, ThreadState::kSpins, 20ms);
        EXPECT_GE(watch.busy_for(), kLimitOfOneThatHasSpun);
        sleeps = true;
        look_until(watch, ThreadState::kAsleep, 20ms);
        pipe.wake();
        look_until(watch, ThreadState::kSpins, 20ms);
        EXPECT_GE(watch.busy_for(), kLimitOfOneThatHasSpun);
        stop = true;
    }
}

TEST(ThreadWatch, NeverCallsASpinnerOneWithoutALimit) {
    std::atomic<bool> stop{false};
    {
        const Watched thread([&stop] {
            while (!stop) {
            }
        });
        ThreadWatch watch(getpid(), thread.id());
        while (watch.look(0ns) == ThreadState::kRuns && watch.spent() < 20ms) {
        }
        EXPECT_EQ(watch.look(0ns), ThreadState::kRuns);
        stop = true;
    }
}

// Keeps the processor busy that the calling thread runs on, and keeps that thread there.
class BusyProcessor {
  public:
    BusyProcessor() {
        pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        EXPECT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
        burner_ = std::thread([this] {
            while (!stop_) {
            }
        });
    }
    ~BusyProcessor() {
        stop_ = true;
        burner_.join();
        pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
    }
    BusyProcessor(const BusyProcessor&) = delete;
    BusyProcessor& operator=(const BusyProcessor&) = delete;

  private:
    cpu_set_t before_{};
    std::atomic<bool> stop_{false};
    std::thread burner_;
};

TEST(ThreadWatch, FindsAYielderThatHardlyGetsAProcessor) {
    std::atomic<bool> stop{false};
    {
        const Watched thread([&stop] {
            const BusyProcessor busy;
            while (!stop) {
                std::this_thread::yield();
            }
        });
        ThreadWatch watch(getpid(), thread.id());
        look_until(watch, ThreadState::kSpins, 200ms);
        EXPECT_LT(watch.spent(), 200ms);
        EXPECT_GE(watch.busy_for(), 200ms) << "on the wall clock";
        watch.forget();
        EXPECT_EQ(watch.look(200ms), ThreadState::kRuns) << "it was in the library";
        stop = true;
    }
}

TEST(ThreadWatch, IsBusySinceItWasFoundAsleep) {
    const Pipe pipe;
    std::atomic<bool> sleeps{false};
    std::atomic<bool> stop{false};
    {
        const Watched thread([&] {
            while (!sleeps) {
            }
            pipe.wait();
            while (!stop) {
            }
        });
        ThreadWatch watch(getpid(), thread.id());
        const auto look_until_busy = [&watch] {
            while (watch.busy_for() < 5ms) {
                watch.look(0ns);
            }
        };
        look_until_busy();
        sleeps = true;
        look_until(watch, ThreadState::kAsleep);
        EXPECT_EQ(watch.busy_for(), 0ns);
        EXPECT_GE(watch.spent(), 5ms);
        pipe.wake();
        look_until_busy();
        EXPECT_GE(watch.spent(), 10ms);
        stop = true;
    }
}

// Between two looks that are far apart, a thread that creates others creates many.
TEST(ThreadWatch, CountsNothingOfWhatAThreadUsedBeforeItActed) {
    std::atomic<bool> stop{false};
    {
        const Watched thread([&stop] {
            while (!stop) {
            }
        });
        ThreadWatch watch(getpid(), thread.id());
        watch.look(0ns);
        for (ThreadWatch other(getpid(), thread.id()); other.spent() < 5ms;) {
            other.look(0ns);
        }
        watch.may_have_acted();
        EXPECT_EQ(watch.busy_for(), 0ns) << "as it acted";
        watch.look(0ns);
        EXPECT_EQ(watch.busy_for(), 0ns) << "at the first look after that";
        while (watch.busy_for() < 5ms) {
            watch.look(0ns);
        }
        stop = true;
    }
}

// Looks for half of a second at a thread that runs `body` on a busy processor: unless it has used
// the limit of processor time, it must not count as one that spins.
template <class Body>
void expect_never_yields(Body body) {
    constexpr auto kLimit = 200ms;
    std::atomic<bool> stop{false};
    {
        const Watched thread([&stop, body] {
            const BusyProcessor busy;
            while (!stop) {
                body();
            }
        });
        ThreadWatch watch(getpid(), thread.id());
        bool was_believed = false;
        for (const std::int64_t end = wall_ns() + 500'000'000; wall_ns() < end;) {
            if (watch.look(kLimit) == ThreadState::kSpins) {
                was_believed = watch.spent() < kLimit;
                break;
            }
        }
        EXPECT_FALSE(was_believed);
        stop = true;
    }
}

TEST(ThreadWatch, BelievesOfNobodyThatComputesOnABusyProcessorThatItYields) {
    expect_never_yields([] {});
}

// A timer wakes it: another thread that answers may do so before it sleeps, where processors are
// busy, and then it takes many turns and sleeps in none.
TEST(ThreadWatch, BelievesOfNobodyThatIsWokenOftenThatItYields) {
    expect_never_yields([] { std::this_thread::sleep_for(1us); });
}

TEST(ThreadWatch, GivesItsLastAnswerWithinAnInterval) {
    const Pipe pipe;
    Watched thread([&pipe] { pipe.wait(); });
    ThreadWatch watch(getpid(), thread.id());
    look_until(watch, ThreadState::kAsleep);
    pipe.wake();
    thread.join();
    EXPECT_EQ(watch.look(0ns, 1h), ThreadState::kAsleep);
    look_until(watch, ThreadState::kEnded);
}

TEST(ThreadWatch, IsToldOfAVisitThatNoLookFound) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    Watched thread([&set] {
        int number = 0;
        sigwait(&set, &number);
    });
    ThreadWatch watch(getpid(), thread.id());
    look_until(watch, ThreadState::kAsleep);
    watch.was_in_library();
    EXPECT_FALSE(watch.was_woken_by_signal()) << "time has not passed it";
    look_until(watch, ThreadState::kAsleep);
    watch.time_passed();
    kill(getpid(), SIGUSR1);
    thread.join();
    watch.was_in_library();
    EXPECT_TRUE(watch.was_woken_by_signal());
}

TEST(ThreadWatch, NamesTheThread) {
    const Pipe pipe;
    const Watched thread([&pipe] {
        pthread_setname_np(pthread_self(), "sender");
        pipe.wait();
    });
    ThreadWatch watch(getpid(), thread.id());
    look_until(watch, ThreadState::kAsleep);
    EXPECT_EQ(watch.name(), "thread " + std::to_string(thread.id()) + " (sender)");
    pipe.wake();
}

}  // namespace
}  // namespace simverbs
