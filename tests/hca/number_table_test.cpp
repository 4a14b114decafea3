#include "simverbs/hca/number_table.hpp"

#include <optional>
#include <set>

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

TEST(NumberTable, ABlockMayBeginAnywhere) {
    NumberTable<int> table(0xFFFF);
    EXPECT_FALSE(table.was_given_out(2U << kNumberBlockBits | 0xFFFF));
    EXPECT_EQ(table.reserve(2), 2U << kNumberBlockBits | 0xFFFF);
    EXPECT_TRUE(table.was_given_out(2U << kNumberBlockBits | 0xFFFF));
    EXPECT_FALSE(table.was_given_out(2U << kNumberBlockBits));
    EXPECT_EQ(table.reserve(2), 2U << kNumberBlockBits);
    EXPECT_TRUE(table.was_given_out(2U << kNumberBlockBits));
    EXPECT_FALSE(table.was_given_out(2U << kNumberBlockBits | 1));
}

TEST(NumberTable, AnOrderFromASeedHasEachNumberOnce) {
    NumberTable<int> table(1, 77);
    NumberTable<int> same(1, 77);
    NumberTable<int> other(1, 78);
    std::set<std::uint32_t> seen;
    bool rises = true;
    bool differs = false;
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < 1U << kNumberBlockBits; ++i) {
        const std::uint32_t number = table.reserve(5).value();
        EXPECT_EQ(number >> kNumberBlockBits, 5U);
        EXPECT_TRUE(seen.insert(number).second);
        EXPECT_EQ(same.reserve(5), number);
        differs = differs || other.reserve(5) != number;
        rises = rises && number > last;
        last = number;
    }
    EXPECT_TRUE(differs);
    EXPECT_FALSE(rises);
}

TEST(NumberTable, AContextWhoseHomeIsFullIsGivenBlocks) {
    NumberTable<int> table;
    int object = 0;
    const auto fill = [&table, &object](std::uint32_t context, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const auto number = table.reserve(context);
            ASSERT_TRUE(number.has_value());
            ASSERT_EQ(table.find(*number), nullptr);
            table.assign(*number, object);
            ASSERT_EQ(table.context_of(*number), context);
        }
    };
    fill(1, kNumbers);
    EXPECT_EQ(table.reserve(1).value() >> kNumberBlockBits, kFirstSpareBlock);
    fill(1, kNumbers);
    fill(2, kNumbers);
    EXPECT_EQ(table.reserve(1).value() >> kNumberBlockBits, kFirstSpareBlock + 1);
    EXPECT_EQ(table.reserve(2).value() >> kNumberBlockBits, kFirstSpareBlock + 2);
    // Numbers that become free at home are used again when the last block is full.
    table.erase(1U << kNumberBlockBits | 77);
    fill(1, kNumbers - 1);
    EXPECT_EQ(table.reserve(1).value() >> kNumberBlockBits, kFirstSpareBlock + 1);
    fill(1, 1);
    EXPECT_EQ(table.reserve(1), 1U << kNumberBlockBits | 77);
}

TEST(NumberTable, ThereIsAnEndToTheBlocks) {
    NumberTable<int> table;
    int object = 0;
    for (std::uint32_t i = 0; i < kNumbersOfAContext; ++i) {
        table.assign(table.reserve(1).value(), object);
    }
    EXPECT_EQ(table.reserve(1), std::nullopt);
    EXPECT_TRUE(table.reserve(2).has_value());
}

TEST(NumberTable, EachContextHasAHomeOfItsOwn) {
    for (const std::optional<std::uint64_t> seed : {std::optional<std::uint64_t>(), {5}}) {
        NumberTable<int> table(1, seed);
        int object = 0;
        std::set<std::uint32_t> seen;
        for (std::uint32_t context = 1; context <= kMaxContexts; ++context) {
            for (int i = 0; i < 3; ++i) {
                const std::uint32_t number = table.reserve(context).value();
                EXPECT_TRUE(seen.insert(number).second);
                EXPECT_LT(number >> kNumberBlockBits, kFirstSpareBlock);
                table.assign(number, object);
                EXPECT_EQ(table.context_of(number), context);
            }
        }
    }
    EXPECT_GE(kMaxContexts, 4096U);
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
