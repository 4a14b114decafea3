// Sequence numbers on their circle, sets that do not mix, and the figures of ports.
#include <concepts>

#include <gtest/gtest.h>

#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/ports.hpp"
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

TEST(Ports, MtuCodesAndBytesCorrespond) {
    EXPECT_EQ(mtu_bytes(Mtu::k256), 256U);
    EXPECT_EQ(mtu_bytes(Mtu::k4096), 4096U);
    EXPECT_FALSE(mtu_from_code(0).has_value());
    EXPECT_EQ(mtu_from_code(3), Mtu::k1024);
    EXPECT_FALSE(mtu_from_code(6).has_value());
    EXPECT_EQ(largest_mtu_within(1500), Mtu::k1024);
    EXPECT_FALSE(largest_mtu_within(255).has_value());
    EXPECT_EQ(to_string(Mtu::k2048), "2048");
}

TEST(Ports, DataRatesAreThoseOfTheMarket) {
    EXPECT_EQ(data_rate_kilobits(LinkSpeed::kSdr, LinkWidth::k4x), 8'000'000U);
    EXPECT_EQ(data_rate_kilobits(LinkSpeed::kQdr, LinkWidth::k4x), 32'000'000U);
    EXPECT_EQ(data_rate_kilobits(LinkSpeed::kEdr, LinkWidth::k4x), 100'000'000U);
    EXPECT_EQ(data_rate_kilobits(LinkSpeed::kHdr, LinkWidth::k4x), 200'000'000U);
    EXPECT_EQ(data_rate_kilobits(LinkSpeed::kNdr, LinkWidth::k4x), 400'000'000U);
    EXPECT_EQ(to_string(LinkSpeed::kNdr), "NDR");
    EXPECT_EQ(to_string(LinkWidth::k2x), "2x");
}

}  // namespace
}  // namespace simverbs
