#include "simverbs/hca/guarded_copy.hpp"

#include <array>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simverbs {
namespace {

// Two pages of which the second is nobody's.
class HalfMapped {
  public:
    HalfMapped() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
        base_ = static_cast<std::byte*>(
            mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(base_ + page_, page_, PROT_NONE);
    }
    ~HalfMapped() { munmap(base_, 2 * page_); }
    HalfMapped(const HalfMapped&) = delete;
    HalfMapped& operator=(const HalfMapped&) = delete;

    // The last `bytes` that are mapped.
    [[nodiscard]] std::byte* last(std::size_t bytes) const { return base_ + page_ - bytes; }

  private:
    std::size_t page_;
    std::byte* base_;
};

class GuardedCopyOf : public testing::TestWithParam<std::size_t> {
  protected:
    void SetUp() override { GuardedCopy::install(); }
};

std::vector<std::byte> pattern(std::size_t length) {
    std::vector<std::byte> bytes(length);
    for (std::size_t i = 0; i < length; ++i) {
        bytes[i] = static_cast<std::byte>(i * 13 + 1);
    }
    return bytes;
}

TEST_P(GuardedCopyOf, CopiesEveryLength) {
    const std::vector<std::byte> from = pattern(GetParam());
    std::vector<std::byte> to(GetParam() + 1, std::byte{0xEE});
    EXPECT_EQ(GuardedCopy::copy(to.data(), from.data(), from.size()), CopyOutcome::kCopied);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
    EXPECT_EQ(to.back(), std::byte{0xEE});
}

TEST_P(GuardedCopyOf, StopsAtTheFirstByteThatItCannotRead) {
    const std::size_t mapped = GetParam() / 2;
    const HalfMapped source;
    const std::vector<std::byte> bytes = pattern(mapped);
    std::copy(bytes.begin(), bytes.end(), source.last(mapped));
    std::vector<std::byte> to(GetParam() + 1);
    EXPECT_EQ(GuardedCopy::copy(to.data(), source.last(mapped), GetParam() + 1),
              CopyOutcome::kSourceFault);
    const std::size_t words = mapped / 8 * 8;  // a word across the border is not taken apart
    EXPECT_TRUE(std::equal(to.data(), to.data() + words, bytes.begin()));
}

TEST_P(GuardedCopyOf, StopsAtTheFirstByteThatItCannotWrite) {
    const std::size_t mapped = GetParam() / 2;
    const HalfMapped target;
    const std::vector<std::byte> from = pattern(GetParam() + 1);
    EXPECT_EQ(GuardedCopy::copy(target.last(mapped), from.data(), from.size()),
              CopyOutcome::kDestinationFault);
    EXPECT_TRUE(std::equal(from.data(), from.data() + mapped / 8 * 8, target.last(mapped)));
}

INSTANTIATE_TEST_SUITE_P(Lengths, GuardedCopyOf,
                         testing::Values(0, 1, 7, 8, 9, 64, 255, 256, 257, 4000));

// The handler that was there before: it leaves the test by a jump, as a program's own would.
sigjmp_buf g_back;
volatile sig_atomic_t g_faults = 0;
void count_and_leave(int /*signal*/) {
    g_faults = g_faults + 1;
    siglongjmp(g_back, 1);
}

void die_by_earlier_handler() {
    struct sigaction earlier {};
    earlier.sa_handler = count_and_leave;
    earlier.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &earlier, nullptr);
    GuardedCopy::install();
    const HalfMapped memory;
    std::byte byte{};
    const bool copied = GuardedCopy::copy(&byte, memory.last(0), 1) == CopyOutcome::kCopied;
    if (copied || g_faults != 0) {
        _exit(2);  // a fault of the copy is not the program's business
    }
    if (sigsetjmp(g_back, 1) == 0) {
        *reinterpret_cast<volatile std::byte*>(memory.last(0)) = std::byte{1};
    }
    _exit(g_faults == 1 ? 0 : 3);
}

TEST(GuardedCopyDeathTest, AnyOtherFaultGoesToTheHandlerThatWasThereBefore) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(die_by_earlier_handler(), testing::ExitedWithCode(0), "");
}

void replace_the_handler() {
    GuardedCopy::install();
    struct sigaction later {};
    later.sa_handler = count_and_leave;
    sigaction(SIGSEGV, &later, nullptr);
    for (int registration = 0; registration < 3; ++registration) {
        GuardedCopy::install();
        struct sigaction current {};
        sigaction(SIGSEGV, nullptr, &current);
        if (current.sa_handler != count_and_leave) {
            _exit(2);  // the program's choice was taken back
        }
        const HalfMapped memory;
        std::byte byte{};
        if (GuardedCopy::copy(&byte, memory.last(0), 1) != CopyOutcome::kSourceFault ||
            GuardedCopy::copy(memory.last(0), &byte, 1) != CopyOutcome::kDestinationFault ||
            GuardedCopy::copy(memory.last(1), &byte, 1) != CopyOutcome::kCopied) {
            _exit(3);
        }
    }
    _exit(0);
}

TEST(GuardedCopyDeathTest, AHandlerThatTheProgramInstalledLaterStays) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(replace_the_handler(), testing::ExitedWithCode(0), "");
}

void crash_without_a_handler() {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    sigaction(SIGSEGV, &none, nullptr);
    GuardedCopy::install();
    const HalfMapped memory;
    *reinterpret_cast<volatile std::byte*>(memory.last(0)) = std::byte{1};
}

void send_without_a_handler() {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    sigaction(SIGSEGV, &none, nullptr);
    GuardedCopy::install();
    raise(SIGSEGV);
}

TEST(GuardedCopyDeathTest, WithoutAnEarlierHandlerASignalThatIsSentKills) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(send_without_a_handler(), testing::KilledBySignal(SIGSEGV), "");
}

TEST(GuardedCopyDeathTest, WithoutAnEarlierHandlerAFaultStillKills) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(crash_without_a_handler(), testing::KilledBySignal(SIGSEGV), "");
}

// As handlers of crashes do: notes what happened, and raises the signal for the default action.
void note_and_raise(int signal, siginfo_t* /*info*/, void* /*context*/) {
    constexpr std::string_view kNote = "noted\n";
    static_cast<void>(!write(STDERR_FILENO, kNote.data(), kNote.size()));
    raise(signal);
}

void crash_with_a_handler_that_raises() {
    struct sigaction once {};
    once.sa_sigaction = note_and_raise;
    once.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
    sigaction(SIGSEGV, &once, nullptr);
    GuardedCopy::install();
    const HalfMapped memory;
    *reinterpret_cast<volatile std::byte*>(memory.last(0)) = std::byte{1};
}

TEST(GuardedCopyDeathTest, AnEarlierHandlerRunsOnceWhereItAskedForThat) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(crash_with_a_handler_that_raises(), testing::KilledBySignal(SIGSEGV), "^noted\n$");
}

// As some containers do. No handler is installed yet, so that the kernel is asked to copy.
void copy_where_the_kernel_refuses() {
    constexpr auto kNumber = static_cast<__u32>(offsetof(seccomp_data, nr));
    std::array<sock_filter, 4> program{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        _exit(2);
    }
    constexpr std::byte kValue{7};
    std::byte to{};
    const bool copied = GuardedCopy::copy(&to, &kValue, 1) == CopyOutcome::kCopied;
    _exit(copied && to == kValue ? 0 : 3);
}

TEST(GuardedCopyDeathTest, CopiesWhereTheKernelRefusesTo) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(copy_where_the_kernel_refuses(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace simverbs
