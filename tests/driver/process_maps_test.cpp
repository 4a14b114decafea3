// The mappings of this process, as the kernel lists them.
#include "simverbs/driver/process_maps.hpp"

#include <string_view>

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simverbs::driver {
namespace {

constexpr std::uint64_t kPageLength = 4096;

// A hole, two private pages, a page to read, and two shared pages of a file in memory.
class Maps : public testing::TestWithParam<ProcessMaps::Way> {
  protected:
    Maps() {
        file_ = memfd_create("simverbs-test", MFD_CLOEXEC);
        EXPECT_EQ(ftruncate(file_, 2 * kPageLength), 0);
        void* const memory = mmap(nullptr, 6 * kPageLength, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(memory, MAP_FAILED);
        begin_ = reinterpret_cast<std::uint64_t>(memory);
        EXPECT_EQ(munmap(at(0), kPageLength), 0);
        EXPECT_EQ(mprotect(at(3), kPageLength, PROT_READ), 0);
        EXPECT_EQ(
            mmap(at(4), 2 * kPageLength, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0),
            at(4));
    }
    ~Maps() override {
        munmap(at(1), 5 * kPageLength);
        close(file_);
    }
    [[nodiscard]] void* at(std::uint64_t page) const {
        return reinterpret_cast<void*>(begin_ + page * kPageLength);
    }

    int file_ = -1;
    std::uint64_t begin_ = 0;
    ProcessMaps maps_{GetParam()};
};

TEST_P(Maps, SayWhatIsWhere) {
    ASSERT_TRUE(maps_.is_open());
    const auto pages = maps_.at_or_after(begin_ + kPageLength);
    ASSERT_TRUE(pages);
    EXPECT_LE(pages->from, begin_ + kPageLength);
    EXPECT_EQ(pages->to, begin_ + 3 * kPageLength);
    EXPECT_TRUE(pages->readable && pages->writable && !pages->is_shared);
    EXPECT_EQ(pages->inode, 0U);

    const auto to_read = maps_.at_or_after(begin_ + 3 * kPageLength + 17);
    ASSERT_TRUE(to_read);
    EXPECT_EQ(to_read->from, begin_ + 3 * kPageLength);
    EXPECT_TRUE(to_read->readable && !to_read->writable);

    const auto shared = maps_.at_or_after(begin_ + 5 * kPageLength);
    ASSERT_TRUE(shared);
    EXPECT_EQ(shared->from, begin_ + 4 * kPageLength);
    EXPECT_EQ(shared->to, begin_ + 6 * kPageLength);
    EXPECT_TRUE(shared->is_shared);
    EXPECT_NE(shared->inode, 0U);
    EXPECT_EQ(std::string_view(shared->name.data()).substr(0, 20), "/memfd:simverbs-test");
}

TEST_P(Maps, SkipAHole) {
    const auto next = maps_.at_or_after(begin_);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->from, begin_ + kPageLength);
}

TEST_P(Maps, GiveTheirNames) {
    const auto stack = maps_.at_or_after(getauxval(AT_RANDOM));
    ASSERT_TRUE(stack);
    EXPECT_STREQ(stack->name.data(), "[stack]");
}

INSTANTIATE_TEST_SUITE_P(All, Maps,
                         testing::Values(ProcessMaps::Way::kAsks, ProcessMaps::Way::kReads),
                         [](const auto& param) {
                             return param.param == ProcessMaps::Way::kAsks ? "Asked" : "Read";
                         });

TEST(MapsOfThisProcess, AreTheSameEitherWay) {
    ProcessMaps asked;
    ProcessMaps read(ProcessMaps::Way::kReads);
    std::uint64_t at = 0;
    int count = 0;
    while (const auto one = asked.at_or_after(at)) {
        const auto other = read.at_or_after(at);
        ASSERT_TRUE(other);
        EXPECT_EQ(one->from, other->from);
        EXPECT_EQ(one->to, other->to);
        EXPECT_EQ(one->inode, other->inode);
        EXPECT_STREQ(one->name.data(), other->name.data());
        EXPECT_EQ(one->readable, other->readable);
        EXPECT_EQ(one->writable, other->writable);
        EXPECT_EQ(one->is_shared, other->is_shared);
        at = one->to;
        ++count;
    }
    EXPECT_GT(count, 5);
}

}  // namespace
}  // namespace simverbs::driver
