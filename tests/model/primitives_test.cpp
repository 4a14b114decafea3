// Sequence numbers on their circle, and sets that do not mix.
#include <concepts>

#include <gtest/gtest.h>

#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/psn.hpp"
#include "simverbs/model/qp_transitions.hpp"

namespace simverbs {
namespace {

template <typename A, typename B>
concept Mixes = requires(A a, B b) {
    a | b;
};

TEST(EnumSet, SetsOfDifferentKindsDoNotMix) {
    static_assert(Mixes<QpAttr, QpAttr>);
    static_assert(!Mixes<QpAttr, Access>);
    static_assert(!Mixes<QpAttrs, AccessRights>);
    static_assert(!Mixes<Service, QpAttr>);
    static_assert(!std::convertible_to<QpAttrs, unsigned>);
    static_assert(!Mixes<QpState, QpState>);
    SUCCEED();
}

TEST(EnumSet, ContainsMeansEveryMember) {
    const QpAttrs both = QpAttr::kPort | QpAttr::kQkey;
    EXPECT_TRUE(both.contains(QpAttr::kPort));
    EXPECT_TRUE(both.contains({}));
    EXPECT_FALSE(QpAttrs(QpAttr::kPort).contains(both));
    EXPECT_TRUE(QpAttrs(QpAttr::kPort).intersects(both));
    EXPECT_EQ(both.without(QpAttr::kPort), QpAttrs(QpAttr::kQkey));
    EXPECT_EQ(both.size(), 2U);
}

TEST(Psn, HasNoOrderButADistance) {
    static_assert(!std::totally_ordered<Psn>);
    EXPECT_EQ(distance(Psn(10), Psn(7)), -3);
    EXPECT_EQ(distance(Psn(0xFFFFFE), Psn(2)), 4);
    EXPECT_EQ(Psn(0xFFFFFF) + 1, Psn(0));
    EXPECT_EQ(Psn(0x1000005).value(), 5U);
}

}  // namespace
}  // namespace simverbs
