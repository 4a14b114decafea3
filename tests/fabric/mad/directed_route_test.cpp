#include "fabric/mad/directed_route.hpp"

#include <gtest/gtest.h>

#include "tests/fabric/mad/managed_fabric.hpp"

namespace fabric::mad {
namespace {

using Kind = DirectedStep::Kind;
using test::make_directed;

Datagram request_over(const std::vector<std::uint8_t>& path) {
    return make_directed(Method::kGet, Attribute::kNodeInfo, path);
}

void expect_step(const DirectedStep& step, Kind kind, std::uint8_t port = 0) {
    EXPECT_EQ(step.kind, kind);
    EXPECT_EQ(step.port, port);
}

// Host port 1, switch in 5 out 7, switch in 2 out 3, host in 1: and back.
TEST(DirectedRoute, LeadsThereAndBack) {
    Datagram smp = request_over({1, 7, 3});
    expect_step(start_route(smp, 1), Kind::kOut, 1);
    expect_step(advance_route(smp, true, 5), Kind::kOut, 7);
    expect_step(advance_route(smp, true, 2), Kind::kOut, 3);
    expect_step(advance_route(smp, false, 1), Kind::kHere);
    EXPECT_EQ(smp.get(smp::kHopPointer), 4U);

    smp.set(smp::kDirection, 1);
    expect_step(advance_route(smp, false, 1), Kind::kOut, 1);
    expect_step(advance_route(smp, true, 3), Kind::kOut, 2);
    expect_step(advance_route(smp, true, 7), Kind::kOut, 5);
    expect_step(advance_route(smp, false, 1), Kind::kHere);
    EXPECT_EQ(smp.get(smp::kHopPointer), 0U);
}

TEST(DirectedRoute, WithoutHopsStaysAtHome) {
    Datagram smp = request_over({});
    expect_step(start_route(smp, 1), Kind::kHere);
    EXPECT_EQ(smp.get(smp::kHopPointer), 1U);
    smp.set(smp::kDirection, 1);
    expect_step(advance_route(smp, false, 1), Kind::kHere);
    EXPECT_EQ(smp.get(smp::kHopPointer), 0U);
}

TEST(DirectedRoute, BeginsAtThePortOfItsClient) {
    Datagram smp = request_over({2, 1});
    expect_step(start_route(smp, 1), Kind::kDiscard);
    smp = request_over({2, 1});
    expect_step(start_route(smp, 0), Kind::kOut, 2);
}

TEST(DirectedRoute, DoesNotLeadThroughAHost) {
    Datagram smp = request_over({1, 1, 1});
    start_route(smp, 1);
    expect_step(advance_route(smp, false, 1), Kind::kDiscard);
}

TEST(DirectedRoute, MayBeginAndEndAtLids) {
    Datagram smp = request_over({4});
    smp.set(smp::kDrSlid, 9);
    expect_step(start_route(smp, 1), Kind::kToLid);
    EXPECT_EQ(smp.get(smp::kHopPointer), 0U) << "the switch that it is addressed to counts";
    expect_step(advance_route(smp, true, 1), Kind::kOut, 4);
    expect_step(advance_route(smp, false, 1), Kind::kHere);
    smp.set(smp::kDirection, 1);
    advance_route(smp, false, 1);
    const DirectedStep home = advance_route(smp, true, 4);
    EXPECT_EQ(home.kind, Kind::kToLid);
    EXPECT_EQ(home.lid, Lid{9});
}

TEST(DirectedRoute, RefusesHopPointersThatCannotBe) {
    Datagram smp = request_over({1, 2});
    smp.set(smp::kHopPointer, 4);
    expect_step(advance_route(smp, true, 1), Kind::kDiscard);
    smp.set(smp::kHopCount, 64);
    smp.set(smp::kHopPointer, 1);
    expect_step(advance_route(smp, true, 1), Kind::kDiscard);
}

}  // namespace
}  // namespace fabric::mad
