// Measures the machine: what its kernel and its caches take for what simverbs needs of them. A
// virtual machine takes several times as long on one day as on another, so that figures of two
// days can be compared only beside these.
//
// Prints a line for each: microseconds, and what they are of; medians of five measurements.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

void require(bool holds, const char* what) {
    if (!holds) {
        std::perror(what);
        std::exit(1);
    }
}

// An act is `each` of what is measured.
template <typename Act>
void measure(const char* what, int times, int each, Act act) {
    std::array<double, 5> figures{};
    for (double& figure : figures) {
        const auto begin = Clock::now();
        for (int i = 0; i < times; ++i) {
            act();
        }
        const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
        figure = took.count() / times / each;
    }
    std::sort(figures.begin(), figures.end());
    std::printf("%.3f %s\n", figures[figures.size() / 2], what);
    std::fflush(stdout);  // a child would print it once more
}

void touch_pages(std::size_t count) {
    constexpr std::size_t kPage = 4096;
    void* const pages =
        mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(pages != MAP_FAILED, "mmap");
    for (std::size_t i = 0; i < count; ++i) {
        static_cast<volatile char*>(pages)[i * kPage] = 1;
    }
    munmap(pages, count * kPage);
}

void wait_for_child(pid_t child) {
    int status = 0;
    require(child > 0 && waitpid(child, &status, 0) == child, "a child");
    require(status == 0, "a child that failed");
}

void fork_and_wait() {
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    wait_for_child(child);
}

void start_a_program() {
    const pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", nullptr);
        _exit(1);
    }
    wait_for_child(child);
}

// Another process sends back each byte that it gets, and ends with this one.
class Echo {
  public:
    Echo() {
        std::array<int, 2> there{};
        std::array<int, 2> back{};
        require(pipe(there.data()) == 0 && pipe(back.data()) == 0, "pipe");
        const pid_t other = fork();
        require(other >= 0, "fork");
        if (other == 0) {
            close(there[1]);
            char byte = 0;
            while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {
            }
            _exit(0);
        }
        close(there[0]);
        close(back[1]);
        to_ = there[1];
        from_ = back[0];
    }
    void exchange() const {
        char byte = 0;
        require(write(to_, &byte, 1) == 1 && read(from_, &byte, 1) == 1, "the other process");
    }

  private:
    int to_ = -1;
    int from_ = -1;
};

// The processors that this process may use.
std::vector<std::size_t> processors() {
    cpu_set_t set;
    require(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &set)) {
            found.push_back(i);
        }
    }
    return found;
}

void stay_on(std::size_t processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    require(sched_setaffinity(0, sizeof set, &set) == 0, "one processor");
}

// Two processes that give up one processor in turns.
void yield_to_another(std::size_t processor, int times) {
    stay_on(processor);
    const pid_t other = fork();
    require(other >= 0, "fork");
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (true) {
            sched_yield();
        }
    }
    for (int i = 0; i < times; ++i) {
        sched_yield();
    }
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
}

// Two threads on two processors write a word in turns.
void hand_over_a_line(const std::vector<std::size_t>& on, int times) {
    alignas(128) static std::atomic<int> word{0};
    const auto take_turns = [&on, times](int own) {
        stay_on(on[static_cast<std::size_t>(own)]);
        for (int i = own; i < 2 * times; i += 2) {
            while (word.load(std::memory_order_acquire) != i) {
            }
            word.store(i + 1, std::memory_order_release);
        }
    };
    word.store(0, std::memory_order_relaxed);
    std::thread other(take_turns, 1);
    std::thread self(take_turns, 0);
    other.join();
    self.join();
}

}  // namespace

int main() {
    measure("a system call", 100'000, 1, [] { syscall(SYS_getppid); });
    constexpr int kPages = 256;
    measure("a page, mapped and touched", 40, kPages, [] { touch_pages(kPages); });
    measure("a child that ends at once", 200, 1, fork_and_wait);
    measure("a program that ends at once", 100, 1, start_a_program);
    const Echo echo;
    measure("by a pipe to another process and back", 5'000, 1, [&echo] { echo.exchange(); });
    // In processes of their own, as this one is to stay on any processor.
    constexpr int kYields = 20'000;
    const std::vector<std::size_t> on = processors();
    measure("to a process that yields, by yielding, and back", 1, kYields, [&on] {
        const pid_t child = fork();
        if (child == 0) {
            yield_to_another(on[0], kYields);
            _exit(0);
        }
        wait_for_child(child);
    });
    if (on.size() > 1) {
        constexpr int kHandOvers = 200'000;
        measure("by a cache line to another processor and back", 1, kHandOvers,
                [&on] { hand_over_a_line(on, kHandOvers); });
    }
}
