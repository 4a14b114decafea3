// programs NAME: small programs whose threads wait for each other in the ways that programs do, to
// be run again and again (run, promises.txt). Plain verbs: nothing here knows of simverbs.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "by_time.hpp"
#include "ends.hpp"
#include "families.hpp"
#include "traffic.hpp"

namespace {

using promises::dawdle;
using promises::End;
using promises::kRounds;
using promises::Pair;
using promises::require;
using promises::traffic;

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

// One thread sends; the other one polls once in vain, and only then gets its end ready. Time limits
// of the first must not pass meanwhile.
void poll_in_vain() {
    End near(0);
    End far(1);
    near.connect(far);
    std::thread sender([&] {
        near.send(100);
        near.wait();
    });
    std::thread receiver([&] {
        require(far.poll() == 0, "nothing can have come");
        far.connect(near);
        far.receive();
        far.wait();
    });
    sender.join();
    receiver.join();
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
        {"poll_in_vain", poll_in_vain},
        {"many_threads", many_threads},
        {"shared_cq", shared_cq},
        {"shared_qp", shared_qp},
        {"epoll_without_limit", promises::epoll_without_limit},
        {"poll_with_limit", promises::poll_with_limit},
        {"naps", promises::naps},
        {"short_naps", promises::short_naps},
        {"timers", promises::timers},
        {"one_timer", promises::one_timer},
        {"signals", promises::signals},
        {"one_signal", promises::one_signal},
        {"time_limit", promises::time_limit},
        {"for_a_while", promises::for_a_while},
        {"how_long_it_took", promises::how_long_it_took},
        {"forks", promises::forks},
        {"forks_at_any_time", promises::forks_at_any_time},
        {"spawns", promises::spawns},
        {"starts_by_a_shell", promises::starts_by_a_shell},
        {"alone", promises::alone},
        {"eight_threads", eight_threads},
    };
    return promises::run_named(programs, count, words);
}
