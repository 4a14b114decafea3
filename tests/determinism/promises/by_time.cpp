#include "by_time.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "ends.hpp"
#include "traffic.hpp"

namespace promises {

namespace {

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

}  // namespace

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

// The timer expires at about the instant at which the other thread posts and waits.
void one_timer() {
    Pair first;
    Pair second;
    std::atomic<bool> armed = false;
    std::thread other([&] {
        const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        const itimerspec once{{0, 0}, {0, 400'000}};
        timerfd_settime(timer, 0, &once, nullptr);
        armed = true;
        std::uint64_t times = 0;
        require(read(timer, &times, sizeof times) == sizeof times, "read");
        second.near.write(second.far, 700);
        second.near.wait();
    });
    while (!armed) {
    }
    for (unsigned left = std::random_device()() % 40; left > 0; --left) {
        dawdle();
    }
    first.near.write(first.far, 5000);
    first.near.wait();
    other.join();
}

namespace {

sigset_t block_alarm() {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    return alarm;
}

}  // namespace

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

// A busy machine may not get through one round in that time: one that ends after two rounds has not
// read the clock often enough to be noticed.
void for_a_while() {
    constexpr int kLeastRounds = 4;
    Pair pair;
    timeval began{};
    timeval now{};
    gettimeofday(&began, nullptr);
    int rounds = 0;
    do {
        pair.near.write(pair.far, 700);
        pair.near.wait();
        gettimeofday(&now, nullptr);
        ++rounds;
    } while (rounds < kLeastRounds ||
             (now.tv_sec - began.tv_sec) * 1'000'000 + now.tv_usec - began.tv_usec < 20'000);
}

void how_long_it_took() {
    Pair pair;
    timeval began{};
    timeval ended{};
    gettimeofday(&began, nullptr);
    traffic(pair);
    gettimeofday(&ended, nullptr);
}

}  // namespace promises
