#include "simverbs/hca/number_table.hpp"

#include <gtest/gtest.h>

namespace simverbs {
namespace {

constexpr std::uint32_t kNumbers = 1U << kNumberBlockBits;

TEST(NumberTable, NumbersOfABlockRiseAndCarryTheBlock) {
    NumberTable<int> table;
    EXPECT_EQ(table.reserve(3), 3U << kNumberBlockBits | 1);
    EXPECT_EQ(table.reserve(3), 3U << kNumberBlockBits | 2);
    EXPECT_EQ(table.reserve(4), 4U << kNumberBlockBits | 1);
}

TEST(NumberTable, ANumberIsUsedAgainOnlyAfterAllOthers) {
    NumberTable<int> table;
    int object = 0;
    const std::uint32_t first = table.reserve(1).value();
    table.assign(first, object);
    table.erase(first);
    for (std::uint32_t i = 1; i < kNumbers; ++i) {
        EXPECT_NE(table.reserve(1), first);
    }
    EXPECT_EQ(table.reserve(1), first);
}

TEST(NumberTable, AWrapStepsOverNumbersInUse) {
    NumberTable<int> table;
    int object = 0;
    const std::uint32_t first = table.reserve(1).value();
    const std::uint32_t second = table.reserve(1).value();
    table.assign(second, object);
    for (std::uint32_t i = 2; i < kNumbers; ++i) {
        ASSERT_TRUE(table.reserve(1).has_value());
    }
    EXPECT_EQ(table.reserve(1), first);
    EXPECT_EQ(table.reserve(1), second + 1);
}

TEST(NumberTable, AFullBlockHasNoMore) {
    NumberTable<int> table;
    int object = 0;
    for (std::uint32_t i = 0; i < kNumbers; ++i) {
        table.assign(table.reserve(1).value(), object);
    }
    EXPECT_EQ(table.reserve(1), std::nullopt);
    EXPECT_TRUE(table.reserve(2).has_value());
}

TEST(NumberTable, NumbersThatNameNothingAreRefused) {
    NumberTable<int> table;
    int object = 0;
    table.assign(table.reserve(1).value(), object);
    EXPECT_EQ(table.find(1U << kNumberBlockBits | 1), &object);
    EXPECT_EQ(table.find(1U << kNumberBlockBits | 2), nullptr);
    EXPECT_EQ(table.find(2U << kNumberBlockBits | 1), nullptr);
    EXPECT_EQ(table.find(0xFFFF'FFFF), nullptr);
    EXPECT_EQ(table.find(0), nullptr);
}

}  // namespace
}  // namespace simverbs
