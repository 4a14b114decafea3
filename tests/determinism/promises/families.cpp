#include "families.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.hpp"
#include "traffic.hpp"

namespace promises {
namespace {

// Uses up to 4 ms of processor time: as long as a process may take to start.
void compute() {
    std::random_device entropy;
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds(entropy() % 4000);
    while (std::chrono::steady_clock::now() < until) {
    }
}

void wait_for(pid_t child) {
    int status = 0;
    require(waitpid(child, &status, 0) == child && status == 0, "the child");
}

void fork_with_threads(const std::function<void()>& before) {
    Pair first;
    traffic(first, 10);
    const pid_t child = fork();
    before();
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
    wait_for(child);
}

// In an embedded world the report is that of this process alone.
void keep_reports_of_children() {
    unsetenv("SIMVERBS_DIGEST");
}

pid_t spawn(const char* program, const char* first, const char* second) {
    const std::array<char*, 4> words{const_cast<char*>(program), const_cast<char*>(first),
                                     const_cast<char*>(second), nullptr};
    pid_t child = 0;
    require(posix_spawn(&child, program, nullptr, nullptr, words.data(), environ) == 0,
            "posix_spawn");
    return child;
}

}  // namespace

void forks() {
    fork_with_threads([] {});
}

void forks_at_any_time() {
    fork_with_threads(compute);
}

void spawns() {
    Pair first;
    traffic(first, 10);
    keep_reports_of_children();
    const pid_t child = spawn("/proc/self/exe", "alone", nullptr);
    const pid_t other = spawn("/proc/self/exe", "alone", nullptr);
    compute();
    Pair second;
    traffic(second, kRounds, 2);
    wait_for(child);
    wait_for(other);
}

void starts_by_a_shell() {
    Pair first;
    keep_reports_of_children();
    std::array<char, 4096> self{};
    require(readlink("/proc/self/exe", self.data(), self.size() - 1) > 0, "readlink");
    setenv("PROGRAM", self.data(), 1);
    const pid_t child = spawn("/bin/sh", "-c",
                              "$PROGRAM alone & $PROGRAM alone & first=$!; $PROGRAM alone &&"
                              " wait $first && wait");
    traffic(first, kRounds);
    wait_for(child);
}

void alone() {
    compute();
    Pair own;
    traffic(own, 20, 3);
    compute();
    Pair more;
    traffic(more, 10, 2);
}

}  // namespace promises
