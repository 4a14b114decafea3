#include "fabric/sm/sweeping_sm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/sm/swept_fabric.hpp"

namespace fabric {
namespace {

using test::SweptFabric;
using test::two_levels;
using testing::ElementsAre;
using testing::IsEmpty;
using SmState = mad::sm_info::State;

void expect_all_pairs(SweptFabric& fabric) {
    const std::size_t hosts = fabric.network.host_count();
    for (std::size_t from = 0; from < hosts; ++from) {
        for (std::size_t to = 0; to < hosts; ++to) {
            if (from != to) {
                fabric.send(from, to, static_cast<std::uint32_t>(from));
            }
        }
    }
    fabric.run();
    for (const auto& host : fabric.hosts) {
        EXPECT_EQ(host->arrivals.size(), hosts - 1);
        host->arrivals.clear();
    }
}

class BringUp : public testing::TestWithParam<const char*> {};

TEST_P(BringUp, LeavesAllPairsReachableAndNothingPending) {
    SweptFabric fabric(GetParam());
    EXPECT_EQ(fabric.sm->state(), SmState::kMaster);
    EXPECT_TRUE(fabric.loop.empty()) << "an idle subnet has no event";
    for (std::size_t i = 0; i < fabric.network.host_count(); ++i) {
        EXPECT_EQ(fabric.port_of(i).state(), PortState::kActive);
        EXPECT_EQ(fabric.port_of(i).attributes().lid, Lid{static_cast<std::uint16_t>(i + 1)});
        EXPECT_EQ(fabric.port_of(i).attributes().sm_lid, Lid{1});
    }
    expect_all_pairs(fabric);
}

INSTANTIATE_TEST_SUITE_P(Topologies, BringUp, testing::Values("pair", "star:2", "star:16"));

TEST(SweepingSm, BringsUpTwoLevels) {
    SweptFabric fabric(two_levels());
    EXPECT_TRUE(fabric.loop.empty());
    expect_all_pairs(fabric);
}

TEST(SweepingSm, TellsHostsWhatItChangedOnce) {
    SweptFabric fabric("star:2");
    EXPECT_THAT(fabric.hosts[1]->events,
                ElementsAre(PortEvent::kLidChange, PortEvent::kSmChange,
                            PortEvent::kClientReregister, PortEvent::kPortActive));
    fabric.hosts[1]->events.clear();
    fabric.sm->set_pkeys(fabric.port_of(0), {0xFFFF, 0x8001});
    fabric.settle();
    EXPECT_EQ(fabric.sm->sweeps(), 2U);
    EXPECT_THAT(fabric.hosts[1]->events, IsEmpty());
    EXPECT_EQ(fabric.hosts[0]->events.back(), PortEvent::kPkeyChange);
    EXPECT_EQ(fabric.port_of(0).attributes().pkeys[1], 0x8001);
}

TEST(SweepingSm, FindsAnotherWayWhenALinkIsCut) {
    SweptFabric fabric(two_levels());
    const Lid far = fabric.port_of(2).attributes().lid;
    Switch& leaf = fabric.network.switch_at(0);
    const std::uint16_t before = leaf.route(far);
    fabric.trace.clear();
    fabric.network.link(before == 3 ? "s0-s2" : "s0-s3").set_state(LinkState::kDown);
    fabric.send(0, 2, 1);
    fabric.run();
    EXPECT_TRUE(fabric.hosts[2]->arrivals.empty()) << "sent before anybody knew";
    EXPECT_NE(leaf.route(far), before);
    EXPECT_TRUE(fabric.loop.empty());
    expect_all_pairs(fabric);

    // The cause stands before its effects.
    std::vector<std::string> order;
    for (const trace::TraceRecord& record : fabric.trace.records()) {
        if (record.name == "link_state" || record.name == "trap_sent" ||
            record.name == "sweep_begins" || record.name == "routes_changed" ||
            record.name == "sweep_ends") {
            if (order.empty() || order.back() != record.name) {
                order.emplace_back(record.name);
            }
        }
    }
    ASSERT_GE(order.size(), 5U);
    EXPECT_EQ(order[0], "link_state");
    EXPECT_EQ(order[1], "trap_sent");
    EXPECT_EQ(order[2], "sweep_begins");
}

TEST(SweepingSm, GivesAPortThatReturnsItsOldLid) {
    SweptFabric fabric("star:3");
    fabric.hosts[1]->events.clear();
    fabric.network.link("h1-s0").set_state(LinkState::kDown);
    fabric.run();
    EXPECT_EQ(fabric.sm->subnet().nodes.size(), 3U);
    fabric.network.link("h1-s0").set_state(LinkState::kUp);
    fabric.run();
    EXPECT_EQ(fabric.port_of(1).attributes().lid, Lid{2});
    EXPECT_THAT(
        fabric.hosts[1]->events,
        ElementsAre(PortEvent::kPortError, PortEvent::kClientReregister, PortEvent::kPortActive));
    expect_all_pairs(fabric);
}

TEST(SweepingSm, FollowsTheLinkOfAPair) {
    SweptFabric fabric("pair");
    fabric.network.link(0).set_state(LinkState::kDown);
    fabric.run();
    fabric.network.link(0).set_state(LinkState::kUp);
    fabric.run();
    EXPECT_EQ(fabric.port_of(1).state(), PortState::kActive);
    expect_all_pairs(fabric);
}

TEST(SweepingSm, AssignsRangesOfLids) {
    SweptFabric fabric("star:2", {.lmc = 2});
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(fabric.port_of(i).attributes().lmc, 2);
        EXPECT_EQ(fabric.port_of(i).attributes().lid.value() % 4, 0);
    }
    const Lid last(static_cast<std::uint16_t>(fabric.port_of(1).attributes().lid.value() + 3));
    fabric.send_to_lid(0, last, 5);
    fabric.run();
    EXPECT_EQ(fabric.hosts[1]->arrivals.size(), 1U);
}

TEST(SweepingSm, WritesPartitions) {
    const Guid second = SweptFabric("star:2").port_of(1).attributes().guid;
    SubnetPolicy policy;
    policy.partitions.push_back({.pkey = 0x10, .members = {{second, false}}, .everyone = true});
    policy.partitions.push_back({.pkey = 0x20, .members = {{second, true}}, .everyone = {}});
    const SweptFabric fabric("star:2", policy);
    EXPECT_THAT(fabric.port_of(0).attributes().pkeys, ElementsAre(0xFFFF, 0x8010));
    EXPECT_THAT(fabric.port_of(1).attributes().pkeys, ElementsAre(0xFFFF, 0x0010, 0x8020));
}

TEST(SweepingSm, DoesWhatAnAdministratorAsks) {
    SweptFabric fabric("star:3");
    const auto& events = fabric.hosts[1]->events;
    EXPECT_FALSE(fabric.sm->set_lid(fabric.port_of(1), Lid{1})) << "the first host's";
    EXPECT_FALSE(fabric.sm->set_lid(fabric.port_of(1), kNoLid));
    ASSERT_TRUE(fabric.sm->set_lid(fabric.port_of(1), Lid{500}));
    fabric.settle();
    EXPECT_EQ(events.back(), PortEvent::kLidChange);
    expect_all_pairs(fabric);
    ASSERT_TRUE(fabric.sm->set_gid(fabric.port_of(1), 1, make_gid(kDefaultSubnetPrefix, Guid(9))));
    EXPECT_FALSE(fabric.sm->set_gid(fabric.port_of(1), 0, Gid{}));
    fabric.run();
    EXPECT_EQ(events.back(), PortEvent::kGidChange);
    fabric.sm->ask_to_reregister(fabric.port_of(1));
    fabric.run();
    EXPECT_EQ(events.back(), PortEvent::kClientReregister);
    fabric.sm->set_sm_lid(fabric.port_of(1), Lid{77});
    fabric.run();
    EXPECT_EQ(events.back(), PortEvent::kSmChange);
    EXPECT_EQ(fabric.port_of(1).attributes().sm_lid, Lid{77});
}

TEST(SweepingSm, KeepsItsKey) {
    SweptFabric fabric("star:2", {.m_key = 0x1234});
    EXPECT_EQ(fabric.port_of(1).state(), PortState::kActive);
    fabric.network.link("h1-s0").set_state(LinkState::kDown);
    fabric.network.link("h1-s0").set_state(LinkState::kUp);
    fabric.run();
    EXPECT_EQ(fabric.port_of(1).state(), PortState::kActive);
}

TEST(SweepingSm, AStandbyWatchesAndTakesOver) {
    SweptFabric fabric("star:3");
    SweepingSm second(fabric.port(1), fabric.loop, fabric.bus, {});
    second.start();
    fabric.settle(second);
    EXPECT_EQ(second.state(), SmState::kStandby);
    EXPECT_EQ(fabric.sm->state(), SmState::kMaster);
    EXPECT_FALSE(fabric.loop.empty()) << "it will ask its master";

    const SimTime death = fabric.loop.now();
    fabric.sm->stop();
    while (second.state() != SmState::kMaster || !second.is_settled()) {
        ASSERT_GT(fabric.loop.run_instant(), 0U);
    }
    EXPECT_GE(fabric.loop.now() - death, SimDuration(600'000'000'000));
    EXPECT_LE(fabric.loop.now() - death, SweepingSm::kPollInterval + 2_s);
    EXPECT_EQ(fabric.port_of(2).attributes().sm_lid, Lid{2});
    EXPECT_EQ(fabric.hosts[2]->events.back(), PortEvent::kSmChange);
    EXPECT_EQ(fabric.port_of(2).attributes().lid, Lid{3}) << "LIDs stay";
    fabric.run();
    EXPECT_TRUE(fabric.loop.empty()) << "no standby is left";
}

TEST(SweepingSm, HandsOverToAHigherPriority) {
    SweptFabric fabric("star:3");
    SweepingSm second(fabric.port(1), fabric.loop, fabric.bus, {.priority = 5});
    second.start();
    for (int steps = 0; steps < 100'000 && (second.state() != SmState::kMaster ||
                                            fabric.sm->state() != SmState::kStandby);
         ++steps) {
        ASSERT_GT(fabric.loop.run_instant(), 0U);
    }
    fabric.settle(second);
    EXPECT_EQ(second.state(), SmState::kMaster);
    EXPECT_EQ(fabric.sm->state(), SmState::kStandby);
    EXPECT_EQ(fabric.port_of(2).attributes().sm_lid, Lid{2});
    EXPECT_LE(fabric.loop.now(), kSimStart + 1_s) << "at once, not at the next poll";
}

}  // namespace
}  // namespace fabric
