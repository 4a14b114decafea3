// programs NAME: small programs whose threads wait for each other in the ways that programs do, to
// be run again and again (run, promises.txt). Plain verbs: nothing here knows of simverbs.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.hpp"

namespace {

using promises::End;
using promises::Pair;
using promises::require;

constexpr int kRounds = 40;

// Uses some processor time, another amount each time.
void dawdle() {
    thread_local std::random_device entropy;
    volatile unsigned sink = 0;
    for (unsigned left = entropy() % 30'000; left > 0; --left) {
        sink = sink + left;
    }
    if (entropy() % 4 == 0) {
        std::this_thread::yield();
    }
}

void traffic(Pair& pair, int rounds = kRounds, unsigned salt = 1) {
    for (int round = 0; round < rounds; ++round) {
        dawdle();
        pair.near.write(pair.far, 1 + (salt * 997U + static_cast<unsigned>(round) * 331U) % 9000U);
        pair.near.wait();
    }
}

// The second thread makes its first call while the first polls.
void creation() {
    Pair first;
    Pair second;
    std::thread other([&] {
        dawdle();
        traffic(second, kRounds, 2);
    });
    traffic(first);
    other.join();
}

void creation_in_a_tree() {
    Pair first;
    Pair second;
    Pair third;
    std::thread other([&] {
        std::thread inner([&] { traffic(third, kRounds, 3); });
        dawdle();
        traffic(second, kRounds, 2);
        inner.join();
    });
    traffic(first);
    other.join();
}

// Whatever was posted by a thread, whoever joins it goes on after it, with the same objects.
void joining() {
    Pair busy;
    Pair pair;
    std::thread other([&] { traffic(busy, 3 * kRounds, 2); });
    for (int i = 0; i < 10; ++i) {
        std::thread worker([&] { traffic(pair, 3, static_cast<unsigned>(i)); });
        worker.join();
        traffic(pair, 2);
    }
    other.join();
}

void pipes() {
    Pair first;
    Pair second;
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    std::thread other([&] {
        char byte = 0;
        for (int i = 0; i < kRounds / 4; ++i) {
            require(read(ends[0], &byte, 1) == 1, "read");
            traffic(second, 2, 2);
        }
    });
    for (int i = 0; i < kRounds / 4; ++i) {
        traffic(first, 3);
        require(write(ends[1], "x", 1) == 1, "write");
    }
    other.join();
}

void condition_variables() {
    Pair first;
    Pair second;
    std::mutex mutex;
    std::condition_variable changed;
    int jobs = 0;
    std::thread other([&] {
        for (int done = 0; done < kRounds / 4; ++done) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return jobs > done; });
            lock.unlock();
            traffic(second, 2, 2);
        }
    });
    for (int i = 0; i < kRounds / 4; ++i) {
        traffic(first, 3);
        const std::lock_guard lock(mutex);
        ++jobs;
        changed.notify_one();
    }
    other.join();
}

// A mutex around what each does with a queue pair of its own.
void mutexes() {
    Pair first;
    Pair second;
    std::mutex mutex;
    const auto work = [&](Pair& pair, unsigned salt) {
        for (int i = 0; i < kRounds; ++i) {
            dawdle();
            {
                const std::lock_guard lock(mutex);
                pair.near.write(pair.far, 1 + (salt * 997U + static_cast<unsigned>(i)) % 9000U);
            }
            pair.near.wait();
        }
    };
    std::thread other([&] { work(second, 2); });
    work(first, 1);
    other.join();
}

// A spin lock around posts and polls, and a second thread that looks at a queue now and then: its
// poll waits for the first thread, which waits for the lock and uses its processor meanwhile.
void polls_under_a_lock() {
    Pair first;
    Pair second;
    std::atomic_flag taken = ATOMIC_FLAG_INIT;
    const auto locked = [&](const auto& call) {
        while (taken.test_and_set(std::memory_order_acquire)) {
        }
        const int found = call();
        taken.clear(std::memory_order_release);
        return found;
    };
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    std::thread other([&] {
        char byte = 0;
        while (read(ends[0], &byte, 1) == 1) {
            require(locked([&] { return second.near.poll(); }) == 0, "nothing is sent");
        }
    });
    for (unsigned i = 0; i < kRounds / 2; ++i) {
        require(write(ends[1], "x", 1) == 1, "write");
        dawdle();
        locked([&] {
            first.near.write(first.far, 1 + i * 331U);
            return 0;
        });
        while (locked([&] { return first.near.poll(); }) == 0) {
        }
    }
    close(ends[1]);
    other.join();
}

// More threads than processors, each with an end of its own; each message is answered.
void many_threads() {
    constexpr int kPairs = 12;
    std::vector<std::unique_ptr<Pair>> pairs;
    pairs.reserve(kPairs);
    for (int i = 0; i < kPairs; ++i) {
        pairs.push_back(std::make_unique<Pair>());
    }
    const auto converse = [](End& own, bool begins, unsigned salt) {
        for (unsigned i = 0; i < 20; ++i) {
            if (begins) {
                own.send(1 + (salt * 97U + i * 331U) % 4000U);
            }
            for (int got = begins ? 0 : 1; got < 2; got += own.poll()) {
            }
            own.receive();
            if (!begins) {
                own.send(8);
                own.wait();
            }
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(2UL * kPairs);
    for (unsigned i = 0; i < kPairs; ++i) {
        pairs[i]->near.receive();
        pairs[i]->far.receive();
        threads.emplace_back([&, i] { converse(pairs[i]->near, true, i); });
        threads.emplace_back([&, i] { converse(pairs[i]->far, false, i); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

void shared_cq() {
    Pair first;
    Pair second(&first);
    std::atomic<int> left = 2 * kRounds;
    const auto work = [&](Pair& pair, unsigned salt) {
        for (int i = 0; i < kRounds; ++i) {
            pair.near.write(pair.far, 1 + (salt * 997U) % 9000U);
            dawdle();
            left -= pair.near.poll();
        }
        while (left > 0) {
            left -= pair.near.poll();
        }
    };
    std::thread other([&] { work(second, 2); });
    work(first, 1);
    other.join();
}

void shared_qp() {
    Pair pair;
    std::mutex mutex;
    const auto work = [&](unsigned salt) {
        for (int i = 0; i < kRounds; ++i) {
            dawdle();
            {
                const std::lock_guard lock(mutex);
                pair.near.write(pair.far, 1 + (salt * 997U + static_cast<unsigned>(i)) % 9000U);
            }
            const std::lock_guard lock(mutex);
            pair.near.wait();
        }
    };
    std::thread other([&] { work(2); });
    work(1);
    other.join();
}

void events_by(const std::function<void(End&)>& sleep) {
    Pair first;
    Pair second(nullptr, true);
    require(fcntl(second.near.channel->fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    std::thread other([&] {
        for (int i = 0; i < kRounds / 2; ++i) {
            require(ibv_req_notify_cq(second.near.cq, 0) == 0, "ibv_req_notify_cq");
            second.near.write(second.far, 500 + static_cast<unsigned>(i));
            ibv_cq* cq = nullptr;
            void* context = nullptr;
            while (ibv_get_cq_event(second.near.channel, &cq, &context) != 0) {
                sleep(second.near);
            }
            ibv_ack_cq_events(cq, 1);
            second.near.wait();
        }
    });
    traffic(first, kRounds / 2);
    other.join();
}

void epoll_without_limit() {
    events_by([](End& end) {
        const int set = epoll_create1(EPOLL_CLOEXEC);
        epoll_event event{.events = EPOLLIN, .data = {}};
        epoll_ctl(set, EPOLL_CTL_ADD, end.channel->fd, &event);
        epoll_wait(set, &event, 1, -1);
        close(set);
    });
}

void poll_with_limit() {
    events_by([](End& end) {
        pollfd look{end.channel->fd, POLLIN, 0};
        poll(&look, 1, 100);
    });
}

void naps() {
    Pair first;
    Pair second;
    std::thread other([&] {
        for (int i = 0; i < kRounds / 2; ++i) {
            usleep(3000);
            second.near.write(second.far, 700);
            second.near.wait();
        }
    });
    traffic(first, 4 * kRounds);
    other.join();
}

// A busy machine may find nobody asleep in so short a time.
void short_naps() {
    Pair pair;
    for (int i = 0; i < 8 * kRounds; ++i) {
        pair.near.write(pair.far, 700);
        usleep(60);
        if (pair.near.poll() == 0) {
            pair.near.wait();
        }
    }
}

void timers() {
    Pair first;
    Pair second;
    std::thread other([&] {
        const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        const itimerspec every{{0, 3'000'000}, {0, 3'000'000}};
        timerfd_settime(timer, 0, &every, nullptr);
        std::uint64_t times = 0;
        for (int i = 0; i < kRounds / 2; ++i) {
            require(read(timer, &times, sizeof times) == sizeof times, "read");
            second.near.write(second.far, 700);
            second.near.wait();
        }
    });
    traffic(first, 4 * kRounds);
    other.join();
}

sigset_t block_alarm() {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    return alarm;
}

void signals() {
    Pair first;
    Pair second;
    const sigset_t alarm = block_alarm();
    const itimerval every{{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &every, nullptr);
    std::thread other([&] {
        for (int i = 0; i < kRounds / 2; ++i) {
            int number = 0;
            sigwait(&alarm, &number);
            second.near.write(second.far, 700);
            second.near.wait();
        }
    });
    traffic(first, 4 * kRounds);
    other.join();
}

// Nobody looks at the thread that the signal woke before it has ended: the other one joins it.
void one_signal() {
    Pair first;
    Pair second;
    const sigset_t alarm = block_alarm();
    std::thread other([&] {
        int number = 0;
        sigwait(&alarm, &number);
        second.near.write(second.far, 700);
        second.near.wait();
    });
    traffic(first, 4 * kRounds);
    kill(getpid(), SIGALRM);
    other.join();
}

void time_limit() {
    Pair first;
    Pair second;
    std::thread other([&] {
        for (int i = 0; i < kRounds; ++i) {
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
            while (std::chrono::steady_clock::now() < end) {
                (void)second.near.poll();
            }
            second.near.write(second.far, 700);
            second.near.wait();
        }
    });
    traffic(first, 8 * kRounds);
    other.join();
}

void for_a_while() {
    Pair pair;
    timeval began{};
    timeval now{};
    gettimeofday(&began, nullptr);
    do {
        pair.near.write(pair.far, 700);
        pair.near.wait();
        gettimeofday(&now, nullptr);
    } while ((now.tv_sec - began.tv_sec) * 1'000'000 + now.tv_usec - began.tv_usec < 20'000);
}

void how_long_it_took() {
    Pair pair;
    timeval began{};
    timeval ended{};
    gettimeofday(&began, nullptr);
    traffic(pair);
    gettimeofday(&ended, nullptr);
}

// Each process has a world of its own.
void forks() {
    Pair first;
    traffic(first, 10);
    const pid_t child = fork();
    if (child == 0) {
        Pair own;
        std::thread other([] {
            Pair mine;
            traffic(mine, 10, 2);
        });
        traffic(own, 10, 3);
        other.join();
        std::exit(0);
    }
    Pair second;
    std::thread other([&] { traffic(second, kRounds, 2); });
    traffic(first);
    other.join();
    int status = 0;
    require(waitpid(child, &status, 0) == child && status == 0, "the child");
}

void eight_threads() {
    std::vector<std::unique_ptr<Pair>> pairs;
    pairs.reserve(8);
    for (int i = 0; i < 8; ++i) {
        pairs.push_back(std::make_unique<Pair>());
    }
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 8; ++i) {
        threads.emplace_back([&pairs, i] { traffic(*pairs[i], kRounds / 2, i); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace

int main(int count, char** words) {
    const promises::Programs programs{
        {"creation", creation},
        {"creation_in_a_tree", creation_in_a_tree},
        {"joining", joining},
        {"pipes", pipes},
        {"condition_variables", condition_variables},
        {"mutexes", mutexes},
        {"polls_under_a_lock", polls_under_a_lock},
        {"many_threads", many_threads},
        {"shared_cq", shared_cq},
        {"shared_qp", shared_qp},
        {"epoll_without_limit", epoll_without_limit},
        {"poll_with_limit", poll_with_limit},
        {"naps", naps},
        {"short_naps", short_naps},
        {"timers", timers},
        {"signals", signals},
        {"one_signal", one_signal},
        {"time_limit", time_limit},
        {"for_a_while", for_a_while},
        {"how_long_it_took", how_long_it_took},
        {"forks", forks},
        {"eight_threads", eight_threads},
    };
    return promises::run_named(programs, count, words);
}
