// Routes that the start-up subnet manager gives a running network.
#include <gtest/gtest.h>

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::RunningFabric;

// h0 and h1 on s0, h2 on s1, and two links between the switches.
Topology two_switches() {
    Topology topology;
    topology.nodes = {{"h0", NodeKind::kHca, 1},
                      {"h1", NodeKind::kHca, 1},
                      {"h2", NodeKind::kHca, 1},
                      {"s0", NodeKind::kSwitch, 4},
                      {"s1", NodeKind::kSwitch, 4}};
    const auto link = [&topology](const char* a, std::uint16_t port_a, const char* b,
                                  std::uint16_t port_b) {
        LinkSpec spec;
        spec.a = {a, PortNumber{port_a}};
        spec.b = {b, PortNumber{port_b}};
        topology.links.push_back(spec);
    };
    link("h0", 1, "s0", 1);
    link("h1", 1, "s0", 2);
    link("h2", 1, "s1", 1);
    link("s0", 3, "s1", 3);
    link("s0", 4, "s1", 4);
    return topology;
}

TEST(Routes, LeadToEveryHostByTheFewestHops) {
    RunningFabric fabric(two_switches());
    for (std::size_t from = 0; from < 3; ++from) {
        for (std::size_t to = 0; to < 3; ++to) {
            if (from != to) {
                fabric.send(from, to, static_cast<std::uint32_t>(from));
            }
        }
    }
    fabric.run();
    for (const auto& host : fabric.hosts) {
        EXPECT_EQ(host->arrivals.size(), 2U);
    }
}

TEST(Routes, SpreadOverEqualPortsByLid) {
    const RunningFabric fabric(two_switches());
    const Switch& s1 = fabric.network.switch_at(1);
    EXPECT_NE(s1.route(Lid{1}), s1.route(Lid{2}));
    EXPECT_EQ(s1.route(Lid{3}), 1U);
    EXPECT_EQ(s1.route(Lid{5}), 0U);
    EXPECT_EQ(s1.route(Lid{9}), Switch::kNoRoute);
}

TEST(Routes, AvoidALinkThatIsDown) {
    RunningFabric fabric(two_switches());
    fabric.network.link("s0-s1").set_state(LinkState::kDown);
    fabric.run();
    EXPECT_EQ(fabric.network.switch_at(0).route(Lid{3}), 4U);
    fabric.network.link("s0-s1#2").set_state(LinkState::kDown);
    fabric.run();
    EXPECT_EQ(fabric.network.switch_at(0).route(Lid{3}), Switch::kNoRoute);
    fabric.send(0, 2, 1);
    fabric.run();
    EXPECT_TRUE(fabric.hosts[2]->arrivals.empty());
    EXPECT_EQ(
        fabric.network.switch_at(0).port(PortNumber{1}).counters().discarded(DropReason::kNoRoute),
        1U);
}

}  // namespace
}  // namespace fabric
