#include "fabric/sm/startup_sm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::RunningFabric;
using testing::ElementsAre;

TEST(StartupSm, AssignsLidsInTheOrderOfNodes) {
    const RunningFabric fabric("star:3");
    for (std::uint16_t i = 0; i < 3; ++i) {
        const PortAttributes& attributes = fabric.port_of(i).attributes();
        EXPECT_EQ(attributes.lid, Lid{static_cast<std::uint16_t>(i + 1)});
        EXPECT_EQ(attributes.sm_lid, Lid{1});
        EXPECT_EQ(attributes.pkeys, std::vector<std::uint16_t>{0xFFFF});
        EXPECT_EQ(fabric.port_of(i).state(), PortState::kActive);
    }
    EXPECT_EQ(fabric.network.switch_at(0).port(PortNumber{0}).attributes().lid, Lid{4});
}

TEST(StartupSm, TakesNoTimeAndLeavesNothingPending) {
    const RunningFabric fabric("star:16");
    EXPECT_EQ(fabric.loop.now(), kSimStart);
    EXPECT_TRUE(fabric.loop.empty());
}

TEST(StartupSm, TellsHostsWhatItChanged) {
    const RunningFabric fabric("pair");
    EXPECT_THAT(fabric.hosts[1]->events,
                ElementsAre(PortEvent::kLidChange, PortEvent::kSmChange,
                            PortEvent::kClientReregister, PortEvent::kPortActive));
}

TEST(StartupSm, MovesAPortToAFreeLidAndRoutesThere) {
    RunningFabric fabric("star:2");
    fabric.hosts[1]->events.clear();
    EXPECT_FALSE(fabric.sm.set_lid(fabric.port_of(1), Lid{1})) << "the other host's";
    EXPECT_FALSE(fabric.sm.set_lid(fabric.port_of(1), Lid{3})) << "the switch's";
    EXPECT_FALSE(fabric.sm.set_lid(fabric.port_of(1), kNoLid));
    EXPECT_TRUE(fabric.hosts[1]->events.empty());
    ASSERT_TRUE(fabric.sm.set_lid(fabric.port_of(1), Lid{500}));
    EXPECT_THAT(fabric.hosts[1]->events, ElementsAre(PortEvent::kLidChange));
    fabric.send(0, 1, 7);
    fabric.run();
    EXPECT_EQ(fabric.hosts[1]->arrivals.size(), 1U);
}

TEST(StartupSm, LeavesNoHoleInAPkeyTable) {
    RunningFabric fabric("pair");
    fabric.sm.set_pkeys(fabric.port_of(0), {0x8001, 0xFFFF});
    fabric.sm.set_pkeys(fabric.port_of(0), {0x8002});
    EXPECT_EQ(fabric.port_of(0).attributes().pkeys, (std::vector<std::uint16_t>{0x8002, 0}));
}

TEST(StartupSm, TakesTheSmallerMtuOfALinksEnds) {
    Topology topology = make_pair();
    topology.links[0].mtu = Mtu::k1024;
    const RunningFabric fabric(topology);
    EXPECT_EQ(fabric.port_of(0).attributes().active_mtu, Mtu::k1024);
}

TEST(StartupSm, BringsALinkBackAfterItsDelay) {
    RunningFabric fabric("star:2");
    fabric.hosts[0]->events.clear();
    Link& link = fabric.network.link("h0-s0");
    link.set_state(LinkState::kDown);
    EXPECT_THAT(fabric.hosts[0]->events, ElementsAre(PortEvent::kPortError));
    fabric.run();
    EXPECT_EQ(fabric.port_of(0).state(), PortState::kDown);
    EXPECT_EQ(fabric.loop.now(), kSimStart + StartupSm::kDefaultReactionDelay);

    link.set_state(LinkState::kUp);
    EXPECT_EQ(fabric.port_of(0).state(), PortState::kInit);
    fabric.run();
    EXPECT_EQ(fabric.port_of(0).state(), PortState::kActive);
    EXPECT_EQ(fabric.loop.now(), kSimStart + 2 * StartupSm::kDefaultReactionDelay);
    EXPECT_EQ(fabric.port_of(0).attributes().lid, Lid{1});
    EXPECT_THAT(
        fabric.hosts[0]->events,
        ElementsAre(PortEvent::kPortError, PortEvent::kClientReregister, PortEvent::kPortActive));
    fabric.send(1, 0, 9);
    fabric.run();
    EXPECT_EQ(fabric.hosts[0]->arrivals.size(), 1U);
}

TEST(StartupSm, AFlapWithinTheDelayIsAnsweredOnce) {
    RunningFabric fabric("pair");
    Link& link = fabric.network.link(0);
    for (int i = 0; i < 3; ++i) {
        link.set_state(LinkState::kDown);
        link.set_state(LinkState::kUp);
    }
    EXPECT_EQ(fabric.loop.pending(), 1U);
    fabric.run();
    EXPECT_EQ(fabric.port_of(0).state(), PortState::kActive);
    EXPECT_EQ(fabric.port_of(0).counters().link_downed, 3U);
}

}  // namespace
}  // namespace fabric
