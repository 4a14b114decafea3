// Branches of a child process that goes back to its beginning after each of them.
#include "simverbs/driver/branch_series.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/core/temporary_folder.hpp"

namespace simverbs::driver {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The shadow memory of a sanitizer is too large to be copied.
constexpr bool kCanGoBack = false;
#else
constexpr bool kCanGoBack = true;
#endif

int in_data = 1;
std::array<char, 400'000> in_bss;

// Sums up as a number how a process finds itself.
class Surroundings {
  public:
    void add(std::uint64_t value) { sum_ = (sum_ ^ value) * 0x0000'0100'0000'01B3U; }
    void add(const void* bytes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            add(static_cast<const unsigned char*>(bytes)[i]);
        }
    }
    [[nodiscard]] std::uint64_t sum() const { return sum_; }

  private:
    std::uint64_t sum_ = 0xCBF2'9CE4'8422'2325U;
};

class BranchSeriesTest : public testing::Test {
  protected:
    BranchSeriesTest() {
        mapped_ = static_cast<char*>(
            mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        std::memset(mapped_, 5, kMapped);
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets_.data());
    }
    ~BranchSeriesTest() override {
        munmap(mapped_, kMapped);
        close(sockets_[0]);
        close(sockets_[1]);
    }

    // Runs one branch after another, and writes what the process looks like before each. A branch
    // that returns ends with its number as its status.
    BranchSeries::Result run(const std::vector<std::function<void()>>& branches) {
        if (!series_.begin()) {
            return {};
        }
        const pid_t child = fork();
        if (child == 0) {
            act(branches);
        }
        return series_.await(child);
    }

    [[nodiscard]] std::vector<std::string> lines() const {
        std::string text(static_cast<std::size_t>(lseek(reports_, 0, SEEK_END)), '\0');
        EXPECT_EQ(pread(reports_, text.data(), text.size(), 0), std::ssize(text));
        std::vector<std::string> lines;
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = text.find('\n', begin);
            lines.push_back(text.substr(begin, end - begin));
            begin = end + 1;
        }
        return lines;
    }

    // As before the first branch, which `run` says of each.
    [[nodiscard]] std::vector<std::string> expected(std::size_t branches) const {
        std::vector<std::string> expected;
        for (std::size_t i = 0; i <= branches; ++i) {
            const std::string ended =
                i == 0 ? " 0"
                       : "branch" + std::to_string(i - 1) + ' ' + std::to_string((i - 1) << 8U);
            expected.push_back(ended + ' ' +
                               lines().front().substr(lines().front().rfind(' ') + 1));
        }
        return expected;
    }

    static constexpr std::size_t kMapped = 200'000;
    fabric::TemporaryFolder folder_{"branch-series-"};
    int reports_ =
        open(folder_.file("reports").c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int output_ =
        open(folder_.file("output").c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    std::vector<char> in_heap_ = std::vector<char>(50'000, 'h');
    std::unique_ptr<char[]> large_ = std::make_unique<char[]>(1'000'000);
    char* mapped_ = nullptr;
    std::array<int, 2> sockets_{};

  private:
    [[nodiscard]] std::uint64_t look() const {
        Surroundings around;
        around.add(static_cast<std::uint64_t>(in_data));
        around.add(in_bss.data(), in_bss.size());
        around.add(in_heap_.data(), in_heap_.size());
        around.add(large_.get(), 1'000'000);
        around.add(mapped_, kMapped);
        const char* const variable = std::getenv("OF_A_BRANCH");
        around.add(variable != nullptr ? 1 : 0);
        sigset_t blocked;
        sigprocmask(SIG_BLOCK, nullptr, &blocked);
        around.add(static_cast<std::uint64_t>(sigismember(&blocked, SIGUSR1)));
        for (int descriptor = 0; descriptor < 64; ++descriptor) {
            const int flags = fcntl(descriptor, F_GETFD);
            around.add(static_cast<std::uint64_t>(flags));
        }
        around.add(reinterpret_cast<std::uint64_t>(sbrk(0)));
        return around.sum();
    }

    [[noreturn]] void act(const std::vector<std::function<void()>>& branches) {
        std::array<char, 2000> on_stack;
        on_stack.fill('s');
        series_.confine();
        const auto [name, status] = series_.next();
        Surroundings around;
        around.add(look());
        around.add(on_stack.data(), on_stack.size());
        const std::string line = std::string(name) + ' ' + std::to_string(status) + ' ' +
                                 std::to_string(around.sum()) + '\n';
        if (write(reports_, line.data(), line.size()) != std::ssize(line)) {
            BranchSeries::end();
        }
        if (!name.empty()) {
            series_.note_end();
        }
        const std::uint32_t next = series_.branches_ended();
        if (next == branches.size()) {
            BranchSeries::end();
        }
        series_.begin_branch("branch" + std::to_string(next));
        on_stack.fill(static_cast<char>(next));
        branches[next]();
        _exit(static_cast<int>(next));
    }

    BranchSeries series_{{.reports = reports_, .output = output_}};
};

#define RETURN_IF_IT_CANNOT_GO_BACK()                                    \
    if (!kCanGoBack) {                                                   \
        EXPECT_EQ(run({[] {}}).branches, 0) << "it has too much memory"; \
        return;                                                          \
    }

TEST_F(BranchSeriesTest, MemoryGoesBackAfterEachBranch) {
    RETURN_IF_IT_CANNOT_GO_BACK();
    const std::vector<std::function<void()>> branches = {
        [] { in_data = 2; },
        [] { in_bss.fill('b'); },
        [this] { in_heap_.assign(80'000, 'x'); },
        [this] { in_heap_ = {}; },
        [this] { std::memset(large_.get(), 1, 1'000'000); },
        [this] { large_.reset(); },
        [this] { large_ = std::make_unique<char[]>(3'000'000); },
        [] {
            for (int i = 0; i < 30'000; ++i) {
                std::memset(std::malloc(100), i, 100);
            }
        },
        [] { setenv("OF_A_BRANCH", "yes", 1); },
        [] { sbrk(1'000'000); },
        [] { sbrk(-8192); },
    };
    const auto [ended, is_broken] = run(branches);
    EXPECT_EQ(ended, branches.size());
    EXPECT_FALSE(is_broken);
    EXPECT_EQ(lines(), expected(branches.size()));
}

TEST_F(BranchSeriesTest, MappingsGoBackAfterEachBranch) {
    RETURN_IF_IT_CANNOT_GO_BACK();
    const auto map = [](std::size_t bytes) {
        void* const memory =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::memset(memory, 7, bytes);
        return static_cast<char*>(memory);
    };
    const std::vector<std::function<void()>> branches = {
        [&] { map(300'000); },
        [&] { munmap(map(300'000), 100'000); },
        [this] { munmap(mapped_, kMapped); },
        [this] { munmap(mapped_ + 8192, 4096); },
        [&, this] {
            munmap(mapped_, 65536);
            map(65536);
        },
        [] { in_data = 3; },
    };
    EXPECT_EQ(run(branches).branches, branches.size());
    EXPECT_EQ(lines(), expected(branches.size()));
}

TEST_F(BranchSeriesTest, DescriptorsAndSignalsGoBackAfterEachBranch) {
    RETURN_IF_IT_CANNOT_GO_BACK();
    const std::vector<std::function<void()>> branches = {
        [this] { close(sockets_[0]); },
        [this] { dup2(output_, sockets_[0]); },
        [] { close(dup(STDERR_FILENO)); },
        [] { static_cast<void>(dup(STDERR_FILENO)); },
        [] { close(STDIN_FILENO); },
        [this] { fcntl(sockets_[0], F_SETFD, 0); },
        [] {
            sigset_t one;
            sigemptyset(&one);
            sigaddset(&one, SIGUSR1);
            sigprocmask(SIG_BLOCK, &one, nullptr);
        },
        [] {},
    };
    EXPECT_EQ(run(branches).branches, branches.size());
    EXPECT_EQ(lines(), expected(branches.size()));
}

// Each is the second branch; the first one has ended well.
TEST_F(BranchSeriesTest, WhatCannotBeTakenBackIsNotDone) {
    RETURN_IF_IT_CANNOT_GO_BACK();
    const std::string file = folder_.file("of_a_branch");
    const auto map_anew = [](void* place, int flags) {
        static_cast<void>(mmap(place, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0));
    };
    const std::vector<std::function<void()>> branches = {
        [&] { close(open(file.c_str(), O_CREAT | O_WRONLY, 0600)); },
        [] { fork(); },
        [] { static_cast<void>(chdir("/")); },
        [] { std::abort(); },
        [] { std::signal(SIGUSR1, SIG_IGN); },
        [] { alarm(100); },
        [] { usleep(1); },
        [this] { mprotect(mapped_, 4096, PROT_READ); },
        [&] { map_anew(nullptr, MAP_SHARED); },
        [&] { map_anew(mapped_, MAP_PRIVATE | MAP_FIXED); },
        [this] {
            char byte = 0;
            static_cast<void>(read(sockets_[0], &byte, 1));
        },
        [this] { static_cast<void>(ftruncate(reports_, 0)); },
        [] { kill(getppid(), SIGKILL); },
        [] { close(kFirstOwnDescriptor); },
    };
    for (std::size_t i = 0; i < branches.size(); ++i) {
        const std::size_t lines_before = lines().size();
        const auto [ended, is_broken] = run({[] {}, branches[i]});
        EXPECT_EQ(ended, 1U) << i;
        EXPECT_TRUE(is_broken) << i;
        EXPECT_EQ(lines().size(), lines_before + 2) << i;
    }
    EXPECT_NE(access(file.c_str(), F_OK), 0);
}

TEST_F(BranchSeriesTest, ReportsOfABrokenBranchAreRemoved) {
    RETURN_IF_IT_CANNOT_GO_BACK();
    const auto report_and_fail = [this] {
        static_cast<void>(write(reports_, "line\n", 5));
        std::abort();
    };
    EXPECT_TRUE(run({[this] { static_cast<void>(write(reports_, "stays\n", 6)); }, report_and_fail})
                    .is_broken);
    ASSERT_EQ(lines().size(), 3U);
    EXPECT_EQ(lines()[1], "stays");
}

TEST_F(BranchSeriesTest, ABranchThatTakesLongIsEnded) {
    RETURN_IF_IT_CANNOT_GO_BACK();
    const auto [ended, is_broken] = run({[] {},
                                         [] {
                                             for (;;) {
                                             }
                                         }});
    EXPECT_EQ(ended, 1U);
    EXPECT_TRUE(is_broken);
}

TEST_F(BranchSeriesTest, EndsForAProcessWhereItIsInVain) {
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(run({[] { usleep(1); }}).branches, 0U);
    }
    EXPECT_TRUE(lines().size() == 3 || !kCanGoBack);
    EXPECT_FALSE(run({[] {}}).is_broken);
    EXPECT_TRUE(lines().size() == 3 || !kCanGoBack) << "it has not begun again";
}

TEST_F(BranchSeriesTest, AProgramThatCrashesIsNotInVain) {
    RETURN_IF_IT_CANNOT_GO_BACK();
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(run({[] { *static_cast<volatile int*>(nullptr) = 1; }}).is_broken);
    }
    EXPECT_EQ(run({[] {}}).branches, 1U);
}

}  // namespace
}  // namespace simverbs::driver
