// Tests which memory of a client a server keeps mapped, and until when.
#include "simverbs/server/shared_regions.hpp"

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simverbs::test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kBase = 0x7000'0000'0000;

// Pages from kBase on; byte i of page p is p + i.
class Pages final : public AddressSpace {
  public:
    bool read(std::uint64_t address, std::byte* bytes, std::size_t length) override {
        for (std::size_t i = 0; i < length; ++i) {
            const std::uint64_t at = address - kBase + i;
            bytes[i] = static_cast<std::byte>(at / kPage + at % kPage);
        }
        return is_mapped;
    }
    bool write(std::uint64_t /*address*/, const std::byte* /*bytes*/,
               std::size_t /*length*/) override {
        return false;
    }
    [[nodiscard]] bool is_own() const override { return false; }
    [[nodiscard]] std::byte* reach(std::uint64_t /*address*/, std::uint64_t /*length*/) override {
        return nullptr;
    }

    bool is_mapped = true;
};

class Shared : public testing::Test {
  protected:
    static PageRange pages(std::uint64_t first, std::uint64_t count) {
        return {kBase + first * kPage, kBase + (first + count) * kPage};
    }
    bool share(RegionName name, const PageRange& range) {
        const int descriptor = regions_.share(name, range, memory_);
        if (descriptor >= 0) {
            close(descriptor);
        }
        return descriptor >= 0;
    }
    [[nodiscard]] bool has(std::uint64_t page) {
        return regions_.find(kBase + page * kPage, kPage) != nullptr;
    }

    Pages memory_;
    SharedRegions regions_;
};

TEST_F(Shared, HoldsWhatThePagesHold) {
    ASSERT_TRUE(share({1, 5}, pages(2, 3)));
    SharedRegions::Region* const region = regions_.find(kBase + 3 * kPage + 7, kPage);
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->segment->base()[kPage + 7], std::byte{3 + 7});
    EXPECT_EQ(regions_.find(kBase + 2 * kPage, 3 * kPage), region);
}

TEST_F(Shared, HasNoByteMore) {
    ASSERT_TRUE(share({1, 5}, pages(2, 3)));
    EXPECT_EQ(regions_.find(kBase + 2 * kPage - 1, 2), nullptr);
    EXPECT_EQ(regions_.find(kBase + 5 * kPage - 1, 2), nullptr);
    EXPECT_EQ(regions_.find(kBase + 5 * kPage, 1), nullptr);
    EXPECT_EQ(regions_.find(kBase + 4 * kPage, ~std::uint64_t{0}), nullptr);
    EXPECT_NE(regions_.find(kBase + 5 * kPage - 1, 1), nullptr);
}

TEST_F(Shared, DoesNotJoinNeighbours) {
    ASSERT_TRUE(share({1, 6}, pages(4, 2)) && share({1, 5}, pages(2, 2)));
    EXPECT_TRUE(has(2) && has(3) && has(4) && has(5));
    EXPECT_EQ(regions_.find(kBase + 3 * kPage, 2 * kPage), nullptr);
}

TEST_F(Shared, EndsWithItsRegionOrContext) {
    ASSERT_TRUE(share({1, 5}, pages(0, 1)) && share({1, 6}, pages(1, 1)) &&
                share({2, 5}, pages(2, 1)));
    regions_.drop({1, 5});
    EXPECT_TRUE(!has(0) && has(1) && has(2));
    regions_.drop_all_of(1);
    EXPECT_TRUE(!has(1) && has(2));
}

TEST_F(Shared, EndsWhereAnythingOfItIsRegisteredAnew) {
    ASSERT_TRUE(share({1, 5}, pages(0, 2)) && share({1, 6}, pages(2, 2)));
    regions_.drop(kBase + 2 * kPage - 1, 1);
    EXPECT_TRUE(!has(0) && !has(1) && has(2));
    regions_.drop(kBase, 2 * kPage);
    EXPECT_TRUE(has(2));
    regions_.drop(kBase + kPage, ~std::uint64_t{0});
    EXPECT_FALSE(has(2));
}

TEST_F(Shared, IsNotWhatCannotBeRead) {
    memory_.is_mapped = false;
    EXPECT_FALSE(share({1, 5}, pages(0, 1)));
    EXPECT_FALSE(has(0));
}

TEST_F(Shared, IsBoundedForEachClient) {
    EXPECT_FALSE(share({1, 1}, pages(0, 8193)));
    std::uint32_t shared = 0;
    while (shared < 1000 && share({1, shared}, pages(2 * shared, 1))) {
        ++shared;
    }
    EXPECT_EQ(shared, 256U);
    regions_.drop({1, 7});
    EXPECT_TRUE(share({1, 7}, pages(5000, 1)));
}

// Memory of this process, and what a client would hand over.
TEST_F(Shared, IsNotMadeForOneMessageEach) {
    const auto lives = [this](std::uint64_t moved) {
        if (!share({1, 5}, pages(0, 4))) {
            return false;
        }
        regions_.find(kBase, kPage)->moved = moved;
        regions_.drop({1, 5});
        return true;
    };
    constexpr std::uint64_t kEightTimes = 8 * 4 * kPage;
    for (int i = 0; i < 31; ++i) {
        EXPECT_TRUE(lives(kEightTimes - 1)) << i;
    }
    EXPECT_TRUE(lives(kEightTimes)) << "pays: the count begins again";
    for (int i = 0; i < 32; ++i) {
        EXPECT_TRUE(lives(kEightTimes - 1)) << i;
    }
    for (int i = 1; i < 32; ++i) {
        EXPECT_FALSE(lives(0)) << i;
    }
    EXPECT_TRUE(lives(0)) << "tried";
    EXPECT_FALSE(lives(0));
    for (int i = 2; i < 32; ++i) {
        EXPECT_FALSE(lives(0)) << i;
    }
    EXPECT_TRUE(lives(kEightTimes)) << "tried, and pays";
    EXPECT_TRUE(lives(0));
}

class Unmapping : public testing::Test {
  protected:
    Unmapping()
        : memory_(mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0)) {
        const auto watch = static_cast<int>(
            syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
        uffdio_api asked{};
        asked.api = UFFD_API;
        asked.features = UFFD_FEATURE_EVENT_UNMAP;
        if (watch >= 0 && ioctl(watch, UFFDIO_API, &asked) == 0) {
            unmaps_.begin(watch);
        }
    }
    ~Unmapping() override { munmap(memory_, 4 * kPage); }

    [[nodiscard]] PageRange pages(std::uint64_t first, std::uint64_t count) const {
        const auto begin = reinterpret_cast<std::uint64_t>(memory_);
        return {begin + first * kPage, begin + (first + count) * kPage};
    }
    std::thread unmap(std::uint64_t first, std::uint64_t count) {
        return std::thread([range = pages(first, count)] {
            munmap(reinterpret_cast<void*>(range.begin), range.end - range.begin);
        });
    }
    [[nodiscard]] bool has_news(int within_ms) const {
        pollfd look{unmaps_.descriptor(), POLLIN, 0};
        return poll(&look, 1, within_ms) == 1;
    }

    void* memory_;
    UnmapWatch unmaps_;
};

TEST_F(Unmapping, IsReportedOnceIfItIsOfWhatWasAdded) {
    const bool is_known = unmaps_.add(pages(0, 2));
    if (!is_known) {  // the kernel is too old, or forbids it: the server looks again and again
        EXPECT_FALSE(unmaps_.add(pages(3, 1)));
        return;
    }
    ASSERT_TRUE(unmaps_.add(pages(3, 1)));
    unmaps_.remove(pages(3, 1));
    unmap(2, 2).join();
    EXPECT_FALSE(has_news(0));
    std::thread unmapping = unmap(1, 1);
    EXPECT_TRUE(has_news(10000));
    unmaps_.end();
    unmapping.join();
    EXPECT_EQ(unmaps_.descriptor(), -1);
    EXPECT_FALSE(unmaps_.add(pages(0, 1)));
}

TEST_F(Unmapping, IsNotReportedByAnyOtherDescriptor) {
    UnmapWatch pipe_end;
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    pipe_end.begin(ends[0]);  // closes it
    EXPECT_FALSE(pipe_end.add(pages(0, 1)));
    EXPECT_EQ(pipe_end.descriptor(), -1);
    EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
    close(ends[1]);
}

TEST_F(Unmapping, IsNotReportedOfWhatIsNotMapped) {
    munmap(memory_, 4 * kPage);
    EXPECT_FALSE(unmaps_.add(pages(0, 4)));
}

TEST(SharedPages, AreWholeOnesOfTheirRegion) {
    EXPECT_TRUE(lies_in({kPage, 2 * kPage}, kPage, kPage));
    EXPECT_TRUE(lies_in({kPage, 2 * kPage}, 1, ~std::uint64_t{0}));
    EXPECT_FALSE(lies_in({kPage, kPage}, kPage, kPage));
    EXPECT_FALSE(lies_in({2 * kPage, kPage}, 0, 8 * kPage));
    EXPECT_FALSE(lies_in({kPage, 2 * kPage}, kPage + 1, 8 * kPage));
    EXPECT_FALSE(lies_in({kPage, 3 * kPage}, kPage, 2 * kPage - 1));
    EXPECT_FALSE(lies_in({kPage + 1, 2 * kPage}, kPage, kPage));
}

}  // namespace
}  // namespace simverbs::test
