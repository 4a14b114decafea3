// Pairs of threads that do nothing but hand a word to each other, without verbs: how fast threads
// of this machine can take turns. Rows of threads_bench have it as their peer.
//
//     pairs_bench memory|futex|eventfd [PAIRS [MESSAGES]]
//
// `memory` spins on the word, `futex` sleeps on it, `eventfd` reads a descriptor. Prints words a
// second in sum, both directions counted.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

enum class Means { kMemory, kFutex, kEventfd };

// One direction of a pair.
class Mailbox {
  public:
    explicit Mailbox(Means means) : means_(means) {
        if (means == Means::kEventfd) {
            descriptor_ = eventfd(0, 0);
            if (descriptor_ < 0) {
                std::perror("eventfd");
                std::exit(1);
            }
        }
    }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    void give() {
        if (means_ == Means::kEventfd) {
            const std::uint64_t one = 1;
            check(write(descriptor_, &one, sizeof one));
            return;
        }
        word_.store(1, std::memory_order_release);
        if (means_ == Means::kFutex) {
            syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        }
    }

    void take() {
        if (means_ == Means::kEventfd) {
            std::uint64_t count = 0;
            check(read(descriptor_, &count, sizeof count));
            return;
        }
        while (word_.load(std::memory_order_acquire) == 0) {
            if (means_ == Means::kFutex) {  // std::atomic::wait() would yield before it sleeps
                syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
            }
        }
        word_.store(0, std::memory_order_relaxed);
    }

  private:
    static void check(ssize_t bytes) {
        if (bytes != sizeof(std::uint64_t)) {
            std::perror("eventfd");
            std::exit(1);
        }
    }

    Means means_;
    int descriptor_ = -1;
    alignas(64) std::atomic<std::uint32_t> word_{0};
};

struct Pair {
    explicit Pair(Means means) : there(means), back(means) {}

    Mailbox there;
    Mailbox back;
};

double words_per_second(Means means, unsigned pairs, unsigned messages) {
    std::vector<std::unique_ptr<Pair>> all;
    for (unsigned i = 0; i < pairs; ++i) {
        all.push_back(std::make_unique<Pair>(means));
    }
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (const auto& pair : all) {
        threads.emplace_back([&pair = *pair, messages] {
            for (unsigned i = 0; i < messages; ++i) {
                pair.there.give();
                pair.back.take();
            }
        });
        threads.emplace_back([&pair = *pair, messages] {
            for (unsigned i = 0; i < messages; ++i) {
                pair.there.take();
                pair.back.give();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    return 2.0 * pairs * messages / wall.count();
}

unsigned number(const char* text) {
    return static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

}  // namespace

int main(int argc, char** argv) {
    constexpr std::array<std::string_view, 3> kNames{"memory", "futex", "eventfd"};
    const std::string_view name = argc > 1 ? argv[1] : "";
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i] == name) {
            const unsigned pairs = number(argc > 2 ? argv[2] : "1");
            const unsigned messages = number(argc > 3 ? argv[3] : "100000");
            std::printf("%.0f words/s\n", words_per_second(static_cast<Means>(i), pairs, messages));
            return 0;
        }
    }
    std::fprintf(stderr, "usage: pairs_bench memory|futex|eventfd [PAIRS [MESSAGES]]\n");
    return 2;
}
