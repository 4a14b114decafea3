// Which uses of one object by two threads have no order, so that a run need not repeat itself.
#include "simverbs/threads/object_use.hpp"

#include <gtest/gtest.h>

namespace simverbs {
namespace {

constexpr std::uint64_t kNone = 0;

class UseOfAnObject : public testing::Test {
  protected:
    UseOfAnObject() {
        first_.number = 1;
        second_.number = 2;
        third_.number = 3;
    }

    ThreadEntry first_;
    ThreadEntry second_;
    ThreadEntry third_;
    ObjectUse object_;
};

TEST_F(UseOfAnObject, ByOneThreadHasAnOrder) {
    EXPECT_EQ(object_.note(Use::kTake, 1, first_), kNone);
    EXPECT_EQ(object_.note(Use::kLook, 1, first_), kNone);
    EXPECT_EQ(object_.note(Use::kTake, 1, first_), kNone);
}

TEST_F(UseOfAnObject, InTwoTurnsHasAnOrder) {
    EXPECT_EQ(object_.note(Use::kTake, 1, first_), kNone);
    EXPECT_EQ(object_.note(Use::kTake, 2, second_), kNone);
}

TEST_F(UseOfAnObject, ByTwoWhoLookHasNoEffect) {
    EXPECT_EQ(object_.note(Use::kLook, 1, first_), kNone);
    EXPECT_EQ(object_.note(Use::kLook, 1, second_), kNone);
}

TEST_F(UseOfAnObject, ByTwoWhoTakeHasNoOrder) {
    object_.note(Use::kTake, 1, first_);
    EXPECT_EQ(object_.note(Use::kTake, 1, second_), first_.number);
}

TEST_F(UseOfAnObject, ByOneWhoTakesAndOneWhoLooksHasNoOrder) {
    object_.note(Use::kTake, 1, first_);
    EXPECT_EQ(object_.note(Use::kLook, 1, second_), first_.number);
    object_.note(Use::kLook, 2, second_);
    EXPECT_EQ(object_.note(Use::kTake, 2, first_), second_.number);
}

TEST_F(UseOfAnObject, RemembersThatSeveralHaveLooked) {
    object_.note(Use::kLook, 1, first_);
    object_.note(Use::kLook, 1, second_);
    EXPECT_NE(object_.note(Use::kTake, 1, second_), kNone) << "the first one looked, too";
}

TEST_F(UseOfAnObject, HasAnOrderWhereOneBeganAfterTheOther) {
    object_.note(Use::kTake, 1, first_);
    second_.before.push_back({first_.number, first_.segment});
    EXPECT_EQ(object_.note(Use::kTake, 1, second_), kNone);
    // But not with a thread that runs beside both.
    EXPECT_EQ(object_.note(Use::kTake, 1, third_), second_.number);
}

TEST_F(UseOfAnObject, HasNoOrderWithWhatACreatorDoesAfterwards) {
    second_.before.push_back({first_.number, first_.segment});
    ++first_.segment;  // it has created the second
    object_.note(Use::kTake, 1, first_);
    EXPECT_EQ(object_.note(Use::kTake, 1, second_), first_.number);
}

}  // namespace
}  // namespace simverbs
