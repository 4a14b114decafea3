// looks NAME: programs that look at the descriptor of a completion channel, and nap, yield or spin
// in between (wait). Plain verbs: nothing here knows of simverbs.
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "ends.hpp"

namespace {

using promises::Pair;
using promises::require;

void looks_and(const std::function<bool(int)>& is_readable, const std::function<void()>& between) {
    Pair pair(nullptr, true);
    require(fcntl(pair.near.channel->fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    for (int i = 0; i < 10; ++i) {
        require(ibv_req_notify_cq(pair.near.cq, 0) == 0, "ibv_req_notify_cq");
        pair.near.write(pair.far, 500);
        while (!is_readable(pair.near.channel->fd)) {
            between();
        }
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        require(ibv_get_cq_event(pair.near.channel, &cq, &context) == 0, "ibv_get_cq_event");
        ibv_ack_cq_events(cq, 1);
        pair.near.wait();
    }
}

bool by_poll(int descriptor) {
    pollfd look{descriptor, POLLIN, 0};
    return poll(&look, 1, 0) == 1;
}

bool by_select(int descriptor) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(descriptor, &set);
    timeval none{};
    return select(descriptor + 1, &set, nullptr, nullptr, &none) == 1;
}

template <int Milliseconds>
bool by_epoll(int descriptor) {
    const int set = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
    const int found = epoll_wait(set, &event, 1, Milliseconds);
    close(set);
    return found == 1;
}

void nothing() {}

// Spins for three seconds of processor time on a queue that was not armed.
void forgets_to_arm() {
    Pair pair(nullptr, true);
    pair.near.write(pair.far, 500);
    pair.near.wait();
    while (std::clock() < 3 * CLOCKS_PER_SEC && !by_epoll<0>(pair.near.channel->fd)) {
    }
}

template <useconds_t Microseconds>
void nap() {
    usleep(Microseconds);
}

void nap_by_nanosleep() {
    const timespec time{0, 20'000};
    nanosleep(&time, nullptr);
}

void wait_for_condition() {
    static std::mutex mutex;
    static std::condition_variable changed;
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::microseconds(300));
}

void yield() {
    std::this_thread::yield();
}

// Several that look and nap, and take turns by a mutex.
void nappers_with_a_mutex() {
    std::mutex mutex;
    std::vector<std::unique_ptr<Pair>> pairs;
    pairs.reserve(3);
    for (int i = 0; i < 3; ++i) {
        pairs.push_back(std::make_unique<Pair>(nullptr, true));
    }
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&mutex, &pair = *pairs[static_cast<std::size_t>(i)]] {
            for (int round = 0; round < 5; ++round) {
                const std::lock_guard lock(mutex);
                require(ibv_req_notify_cq(pair.near.cq, 0) == 0, "ibv_req_notify_cq");
                pair.near.write(pair.far, 500);
                while (!by_poll(pair.near.channel->fd)) {
                    usleep(50);
                }
                ibv_cq* cq = nullptr;
                void* context = nullptr;
                require(ibv_get_cq_event(pair.near.channel, &cq, &context) == 0, "event");
                ibv_ack_cq_events(cq, 1);
                pair.near.wait();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace

int main(int count, char** words) {
    const promises::Programs programs{
        {"poll_nap_1", [] { looks_and(by_poll, nap<1>); }},
        {"poll_nap_10", [] { looks_and(by_poll, nap<10>); }},
        {"poll_nap_100", [] { looks_and(by_poll, nap<100>); }},
        {"poll_nap_500", [] { looks_and(by_poll, nap<500>); }},
        {"poll_nap_1000", [] { looks_and(by_poll, nap<1000>); }},
        {"poll_nap_2000", [] { looks_and(by_poll, nap<2000>); }},
        {"select_nap_100", [] { looks_and(by_select, nap<100>); }},
        {"epoll_nap_100", [] { looks_and(by_epoll<0>, nap<100>); }},
        {"poll_nanosleep", [] { looks_and(by_poll, nap_by_nanosleep); }},
        {"poll_condition", [] { looks_and(by_poll, wait_for_condition); }},
        {"poll_yield", [] { looks_and(by_poll, yield); }},
        {"epoll_spin", [] { looks_and(by_epoll<0>, nothing); }},
        {"epoll_limit_spin", [] { looks_and(by_epoll<1>, nothing); }},
        {"forgets_to_arm", forgets_to_arm},
        {"nappers_with_a_mutex", nappers_with_a_mutex},
    };
    return promises::run_named(programs, count, words);
}
