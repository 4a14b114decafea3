// Checks of memory that is to be registered, asked of the kernel about mappings made here.
#include "simverbs/driver/mapped_memory.hpp"

#include <cerrno>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace simverbs::driver {
namespace {

constexpr std::uint64_t kPage = 4096;

// Pages that end with a hole.
class Mapped : public testing::TestWithParam<std::uint64_t> {
  protected:
    Mapped() {
        void* const mapped = mmap(nullptr, (pages() + 1) * kPage, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT_NE(mapped, MAP_FAILED);
        begin_ = reinterpret_cast<std::uint64_t>(mapped);
        munmap(at(pages()), kPage);
    }
    ~Mapped() override { munmap(at(0), pages() * kPage); }

    [[nodiscard]] static std::uint64_t pages() { return GetParam(); }
    [[nodiscard]] void* at(std::uint64_t page) const {
        return reinterpret_cast<void*>(begin_ + page * kPage);
    }

    std::uint64_t begin_ = 0;
};

TEST_P(Mapped, ToItsLastByte) {
    EXPECT_TRUE(is_mapped(begin_, pages() * kPage, true));
    EXPECT_TRUE(is_mapped(begin_ + pages() * kPage - 1, 1, true));
    EXPECT_TRUE(is_mapped(begin_ + 1, pages() * kPage - 1, true));
}

TEST_P(Mapped, NotIntoAHole) {
    EXPECT_FALSE(is_mapped(begin_, pages() * kPage + 1, true));
    EXPECT_FALSE(is_mapped(begin_ + pages() * kPage, 1, false));
}

TEST_P(Mapped, NotAcrossAHole) {
    munmap(at(pages() / 2), kPage);
    EXPECT_FALSE(is_mapped(begin_, pages() * kPage, false));
    EXPECT_TRUE(is_mapped(begin_, pages() / 2 * kPage, false));
}

TEST_P(Mapped, NotForWritingWhereAPageIsReadOnly) {
    mprotect(at(pages() - 1), kPage, PROT_READ);
    EXPECT_TRUE(is_mapped(begin_, pages() * kPage, false));
    EXPECT_FALSE(is_mapped(begin_, pages() * kPage, true));
}

TEST_P(Mapped, NotWhereAPageMayNotBeRead) {
    mprotect(at(1), kPage, PROT_NONE);
    EXPECT_FALSE(is_mapped(begin_, pages() * kPage, false));
}

TEST_P(Mapped, LeavesErrnoAlone) {
    errno = ENOTTY;
    EXPECT_FALSE(is_mapped(begin_ + pages() * kPage, 1, true));
    EXPECT_EQ(errno, ENOTTY);
    EXPECT_FALSE(is_mapped(begin_, (pages() + 17) * kPage, true));
    EXPECT_EQ(errno, ENOTTY);
}

// Short ranges are faulted in, long ones looked up.
INSTANTIATE_TEST_SUITE_P(ShortAndLong, Mapped, testing::Values(2, 16, 17, 4096));

}  // namespace
}  // namespace simverbs::driver
