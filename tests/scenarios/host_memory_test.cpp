#include "scenarios/engine/host_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace scenarios {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMega = std::size_t{1} << 20;

// Writes to the first byte of every page of a memory, from `first` on, and to the last of all.
void touch(std::span<std::uint8_t> memory, std::size_t first = 0) {
    for (std::size_t at = first; at < memory.size(); at += kPage) {
        memory[at] = 0xa5;
    }
    memory.back() = 0xa5;
}

bool is_zero(std::span<const std::uint8_t> memory) {
    return std::ranges::all_of(memory, [](std::uint8_t byte) { return byte == 0; });
}

// Returns true if worlds after one another, with memories of those sizes, find zeros. `touched`:
// how many bytes at the end of each memory they write to.
bool worlds_find_zeros(const std::vector<std::size_t>& sizes, std::size_t touched) {
    for (int world = 0; world < 4; ++world) {
        HostMemory memory;
        for (const std::size_t size : sizes) {
            const std::span taken(memory.take(size), size);
            if (!is_zero(taken)) {
                return false;
            }
            touch(taken, size - std::min(size, touched));
        }
    }
    return true;
}

TEST(HostMemory, OfTheNextWorldHasNothingOfTheLast) {
    EXPECT_TRUE(worlds_find_zeros({kMega, kMega}, 2 * kPage));  // few pages
    EXPECT_TRUE(worlds_find_zeros({kMega, kMega}, kMega));      // many
    EXPECT_TRUE(worlds_find_zeros({1, kPage, kPage + 1}, kMega));
    EXPECT_TRUE(worlds_find_zeros({3 * kMega, 3 * kMega, 100}, kPage));  // two that are shared
    EXPECT_TRUE(
        worlds_find_zeros({100, 5 * kMega, 100, 5 * kMega}, kPage));    // and some that are not
    EXPECT_TRUE(worlds_find_zeros({4 * kMega - kPage, kPage}, kPage));  // to the last byte
    EXPECT_TRUE(worlds_find_zeros({4 * kMega}, kPage));
}

TEST(HostMemory, OfTwoWorldsAtATimeIsEachItsOwn) {
    std::optional<HostMemory> one{std::in_place};
    HostMemory other;
    const std::span first(one->take(kPage), kPage);
    const std::span second(other.take(kPage), kPage);
    touch(first);
    EXPECT_TRUE(is_zero(second));
    touch(second);
    one.reset();
    EXPECT_EQ(second.back(), 0xa5);
    HostMemory next;
    EXPECT_TRUE(is_zero(std::span(next.take(kPage), kPage)));
}

TEST(HostMemory, MayEndInAnotherThread) {
    std::optional<HostMemory> memory{std::in_place};
    touch(std::span(memory->take(kPage), kPage));
    std::thread([&memory] { memory.reset(); }).join();
    HostMemory next;
    EXPECT_TRUE(is_zero(std::span(next.take(kPage), kPage)));
}

}  // namespace
}  // namespace scenarios
