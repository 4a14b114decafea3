// The list of tags, and the count that keeps software and device in step.
#include "simverbs/transport/tag_list.hpp"

#include <gtest/gtest.h>

namespace simverbs {
namespace {

constexpr std::uint64_t kWhole = ~std::uint64_t{0};

TaggedBuffer tagged(std::uint8_t handle, std::uint64_t tag, std::uint64_t mask = kWhole) {
    return {.wr_id = handle + 100U, .tag = tag, .mask = mask, .handle = handle};
}

int handle_of(const std::optional<TaggedBuffer>& buffer) {
    return buffer ? buffer->handle : -1;
}

TEST(TagList, TakesTheOldestThatMatches) {
    TagList list(4);
    ASSERT_TRUE(list.add(tagged(2, 0x10, 0xF0)));
    ASSERT_TRUE(list.add(tagged(0, 0x11)));
    ASSERT_TRUE(list.add(tagged(1, 0x11)));
    EXPECT_EQ(handle_of(list.match(0x11)), 2);
    EXPECT_EQ(handle_of(list.match(0x12)), -1);
    EXPECT_EQ(handle_of(list.match(0x11)), 0);
    EXPECT_EQ(handle_of(list.match(0x11)), 1);
    EXPECT_EQ(handle_of(list.match(0x11)), -1);
}

TEST(TagList, ABitOutsideTheMaskIsNeverMatched) {
    TagList list(4);
    ASSERT_TRUE(list.add(tagged(0, 0x111, 0xFF)));
    EXPECT_EQ(handle_of(list.match(0x111)), -1);
}

TEST(TagList, AllThatWaitAreInUseAtOnce) {
    TagList list(4);
    list.count_unexpected();
    for (std::uint8_t handle = 0; handle < 3; ++handle) {
        ASSERT_TRUE(list.add(tagged(handle, handle)));
    }
    list.report(1);
    EXPECT_EQ(handle_of(list.match(2)), 2);
    EXPECT_EQ(handle_of(list.match(0)), 0);
    EXPECT_EQ(handle_of(list.match(1)), 1);
}

TEST(TagList, HoldsNoMoreThanItWasMadeFor) {
    TagList list(2);
    EXPECT_FALSE(list.add(tagged(2, 1))) << "a handle beyond its end";
    EXPECT_TRUE(list.add(tagged(0, 1)));
    EXPECT_TRUE(list.add(tagged(1, 1)));
    EXPECT_FALSE(list.add(tagged(0, 1)));
    EXPECT_EQ(list.size(), 2U);
}

TEST(TagList, RemovesWhatIsThereOnce) {
    TagList list(4);
    ASSERT_TRUE(list.add(tagged(0, 1)));
    ASSERT_TRUE(list.add(tagged(1, 2)));
    EXPECT_TRUE(list.remove(0));
    EXPECT_FALSE(list.remove(0));
    EXPECT_EQ(handle_of(list.match(1)), -1);
    EXPECT_EQ(handle_of(list.match(2)), 1) << "the others stay in use";
}

TEST(TagList, WhatIsAddedBehindSoftwaresBackWaits) {
    TagList list(4);
    ASSERT_TRUE(list.add(tagged(0, 1)));
    list.count_unexpected();
    EXPECT_FALSE(list.synchronized());
    ASSERT_TRUE(list.add(tagged(1, 2)));
    EXPECT_EQ(handle_of(list.match(2)), -1);
    EXPECT_TRUE(list.would_match(2));
    EXPECT_FALSE(list.would_match(1)) << "it is in use";
    EXPECT_EQ(handle_of(list.match(1)), 0);
    list.report(2);
    EXPECT_EQ(handle_of(list.match(2)), -1) << "a count that is wrong";
    list.report(1);
    EXPECT_EQ(handle_of(list.match(2)), 1);
}

TEST(TagList, RemovingAmongThoseThatWaitLeavesTheOthersAsTheyAre) {
    TagList list(4);
    ASSERT_TRUE(list.add(tagged(0, 1)));
    list.count_unexpected();
    ASSERT_TRUE(list.add(tagged(1, 2)));
    ASSERT_TRUE(list.add(tagged(2, 3)));
    ASSERT_TRUE(list.remove(1));
    EXPECT_EQ(handle_of(list.match(3)), -1);
    ASSERT_TRUE(list.remove(0));
    EXPECT_EQ(handle_of(list.match(3)), -1);
    list.discount_unexpected();
    EXPECT_EQ(handle_of(list.match(3)), 2) << "the message that was in its way failed";
}

TEST(TagList, CountsModulo65536) {
    TagList list(1);
    for (int i = 0; i < 65'536 + 5; ++i) {
        list.count_unexpected();
    }
    list.report(5);
    EXPECT_TRUE(list.synchronized());
}

TEST(TagList, SaysWhenSoftwareIsFarBehind) {
    TagList list(1);
    for (int i = 0; i < 0x3FFF; ++i) {
        list.count_unexpected();
    }
    EXPECT_FALSE(list.is_far_behind());
    list.count_unexpected();
    EXPECT_TRUE(list.is_far_behind());
    list.report(1);
    EXPECT_FALSE(list.is_far_behind());
}

}  // namespace
}  // namespace simverbs
