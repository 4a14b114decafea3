// Measures the machine: two programs that poll exchange 8 bytes by way of a third process, as
// programs on a served world do, and nothing is simulated: the third process only copies a word.
//
// A client does what ib_write_lat does: it waits for the word in its memory without any call,
// posts, and polls for its completion. With `calls` it does what ib_send_lat does, and waits by
// calls alone. A call that finds nothing gives up the processor; so does the relay after a number
// of looks in vain. A row: how the clients wait, the relay's looks; and of a half round trip in
// microseconds the typical one, the average, and that of 99.9 %.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::uint32_t kMessages = 20'000;
constexpr std::array kLooks = {1U, 20U, 200U, 2'000U, 1'000'000U};  // of the relay, in vain

struct alignas(128) Word {
    std::atomic<std::uint32_t> value{0};
};

struct Client {
    Word posted;
    Word completed;
    Word memory;  // that the other writes
    Word is_here;
};

struct Shared {
    std::array<Client, 2> clients;
    Word end;
};

void relay(Shared& shared, std::uint32_t looks) {
    std::array<std::uint32_t, 2> carried{};
    std::uint32_t in_vain = 0;
    while (shared.end.value.load(std::memory_order_relaxed) == 0) {
        bool moved = false;
        for (std::size_t i = 0; i < carried.size(); ++i) {
            Client& from = shared.clients[i];
            const std::uint32_t posted = from.posted.value.load(std::memory_order_acquire);
            if (posted != carried[i]) {
                carried[i] = posted;
                moved = true;
                shared.clients[1 - i].memory.value.store(posted, std::memory_order_release);
                from.completed.value.store(posted, std::memory_order_release);
            }
        }
        if (moved) {
            in_vain = 0;
        } else if (++in_vain >= looks) {
            in_vain = 0;
            sched_yield();
        }
    }
}

void wait_for(const Word& word, std::uint32_t value, bool by_calls) {
    while (word.value.load(std::memory_order_acquire) != value) {
        if (by_calls) {
            sched_yield();
        }
    }
}

using Clock = std::chrono::steady_clock;

// Returns when each message was posted.
std::vector<Clock::time_point> exchange(Shared& shared, std::size_t index, bool by_calls) {
    Client& self = shared.clients[index];
    self.is_here.value = 1;
    wait_for(shared.clients[1 - index].is_here, 1, true);
    std::vector<Clock::time_point> posted;
    posted.reserve(kMessages);
    for (std::uint32_t message = 1; message <= kMessages; ++message) {
        // The first client begins, the second answers.
        const std::uint32_t awaited = index == 0 ? message - 1 : message;
        if (awaited != 0) {
            wait_for(self.memory, awaited, by_calls);
        }
        posted.push_back(Clock::now());
        self.posted.value.store(message, std::memory_order_release);
        wait_for(self.completed, message, true);
    }
    return posted;
}

template <typename Run>
pid_t start(Run&& run) {
    const pid_t child = fork();
    if (child < 0) {
        std::perror("relay_bench: fork");
        std::exit(EXIT_FAILURE);
    }
    if (child == 0) {
        run();
        _exit(EXIT_SUCCESS);
    }
    return child;
}

void measure(std::uint32_t looks, bool by_calls) {
    void* const pages =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        std::perror("relay_bench: mmap");
        std::exit(EXIT_FAILURE);
    }
    Shared& shared = *new (pages) Shared;
    const pid_t carrier = start([&] { relay(shared, looks); });
    const pid_t other = start([&] { exchange(shared, 1, by_calls); });
    const std::vector<Clock::time_point> posted = exchange(shared, 0, by_calls);
    waitpid(other, nullptr, 0);
    shared.end.value = 1;
    waitpid(carrier, nullptr, 0);
    munmap(pages, sizeof(Shared));

    std::vector<double> halves;
    for (std::size_t i = 1; i < posted.size(); ++i) {
        const std::chrono::duration<double, std::micro> whole = posted[i] - posted[i - 1];
        halves.push_back(whole.count() / 2);
    }
    double sum = 0;
    for (const double half : halves) {
        sum += half;
    }
    std::sort(halves.begin(), halves.end());
    std::printf("%s %u %.2f %.2f %.2f\n", by_calls ? "calls" : "memory", looks,
                halves[halves.size() / 2], sum / static_cast<double>(halves.size()),
                halves[halves.size() * 999 / 1000]);
    std::fflush(stdout);
}

}  // namespace

int main() {
    for (const bool by_calls : {false, true}) {
        for (const std::uint32_t looks : kLooks) {
            measure(looks, by_calls);
        }
    }
    return EXIT_SUCCESS;
}
