// Which copies may change places, and which may not.
#include "fabric/net/deferred_arrivals.hpp"

#include <gmock/gmock.h>

namespace fabric::test {
namespace {

constexpr int kOne = 1;
constexpr int kOther = 2;

TouchedMemories copy(const void* from, std::uint64_t from_begin, const void* to,
                     std::uint64_t to_begin) {
    constexpr std::uint64_t kBytes = 100;
    return {{from, from_begin, from_begin + kBytes}, {to, to_begin, to_begin + kBytes}};
}

TEST(TouchedMemories, ConflictWhereOneWritesWhatTheOtherReadsOrWrites) {
    const TouchedMemories first = copy(&kOne, 0, &kOther, 1000);
    EXPECT_TRUE(first.conflict_with(copy(&kOne, 500, &kOther, 1099))) << "both write";
    EXPECT_TRUE(first.conflict_with(copy(&kOther, 1050, &kOne, 500))) << "reads what comes";
    EXPECT_TRUE(first.conflict_with(copy(&kOther, 0, &kOne, 99))) << "writes what goes";
    EXPECT_FALSE(first.conflict_with(copy(&kOne, 50, &kOther, 0))) << "both read";
    EXPECT_FALSE(first.conflict_with(copy(&kOne, 500, &kOther, 1100))) << "behind it";
    EXPECT_FALSE(first.conflict_with(copy(&kOther, 0, &kOne, 1050))) << "of the other memory";
}

TEST(TouchedMemories, OfNoMemoryConflictWithNone) {
    const TouchedMemories first = copy(&kOne, 0, &kOther, 1000);
    EXPECT_FALSE(first.conflict_with({}));
    EXPECT_FALSE(TouchedMemories{}.conflict_with(first));
    EXPECT_FALSE(TouchedMemories{}.conflict_with({}));
    EXPECT_FALSE(first.conflict_with(copy(nullptr, 0, nullptr, 1000)));
}

}  // namespace
}  // namespace fabric::test
