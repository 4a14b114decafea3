#include "fabric/core/random.hpp"

#include <array>
#include <cstddef>

#include <gtest/gtest.h>

namespace fabric {
namespace {

TEST(RandomStream, RepeatsItselfForOneNameAndSeed) {
    RandomStream a(7, "h0", "loss");
    RandomStream b(7, "h0", "loss");
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(a.next(), b.next());
    }
}

TEST(RandomStream, DiffersBySeedComponentAndPurpose) {
    const std::uint64_t first = RandomStream(7, "h0", "loss").next();
    EXPECT_NE(first, RandomStream(8, "h0", "loss").next());
    EXPECT_NE(first, RandomStream(7, "h1", "loss").next());
    EXPECT_NE(first, RandomStream(7, "h0", "delay").next());
    EXPECT_NE(RandomStream(7, "a", "b").next(), RandomStream(7, "b", "a").next());
}

TEST(RandomStream, DrawsEveryNumberBelowItsBoundAboutEquallyOften) {
    RandomStream random(1, "test", "below");
    std::array<int, 6> count{};
    for (int i = 0; i < 60'000; ++i) {
        ++count.at(random.below(count.size()));
    }
    for (const int c : count) {
        EXPECT_NEAR(c, 10'000, 500);
    }
}

TEST(RandomStream, StaysWithinClosedIntervals) {
    RandomStream random(1, "test", "between");
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t drawn = random.between(10, 12);
        EXPECT_TRUE(drawn >= 10 && drawn <= 12);
    }
    EXPECT_EQ(random.between(4, 4), 4U);
    random.between(0, ~std::uint64_t{0});
}

TEST(RandomStream, HonoursARatioWithoutFloatingPoint) {
    RandomStream random(1, "test", "chance");
    int hits = 0;
    for (int i = 0; i < 100'000; ++i) {
        hits += random.chance({1, 100}) ? 1 : 0;
        EXPECT_FALSE(random.chance({0, 1}));
        EXPECT_TRUE(random.chance({3, 3}));
    }
    EXPECT_NEAR(hits, 1000, 150);
}

}  // namespace
}  // namespace fabric
