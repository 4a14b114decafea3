// The duties of a switch besides unicast forwarding: groups, partitions, lanes by ingress port.
#include "fabric/net/switch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/net/link_direction.hpp"
#include "fabric/net/pkey.hpp"

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::RunningFabric;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Lid kGroup{0xC001};

struct CountingCargo final : FrameCargo {
    void release() override { ++released; }
    void retain() override { ++retained; }
    int released = 0;
    int retained = 0;
};

void send_to_group(RunningFabric& fabric, std::size_t from, FrameCargo* cargo = nullptr,
                   std::uint16_t pkey = 0xFFFF) {
    FramePtr frame = fabric.network.frames().make();
    frame->source = fabric.network.host(from).id();
    frame->slid = fabric.port_of(from).attributes().lid;
    frame->dlid = kGroup;
    frame->pkey = pkey;
    frame->wire_bytes = 1024;
    frame->payload_bytes = 998;
    frame->cargo = cargo;
    frame->transport_as<std::uint32_t>() = 1;
    fabric.port_of(from).send(std::move(frame));
}

Port& switch_port(RunningFabric& fabric, std::uint16_t number) {
    return fabric.network.switch_at(0).port(PortNumber{number});
}

TEST(SwitchMulticast, ReachesTheMembersAndNotTheSender) {
    RunningFabric fabric("star:5");
    fabric.network.switch_at(0).set_multicast_table({{kGroup, {1, 2, 4, 5}}});
    fabric.network.link("h4-s0").set_state(LinkState::kDown);
    CountingCargo cargo;
    send_to_group(fabric, 0, &cargo);
    fabric.run();
    EXPECT_THAT(fabric.hosts[0]->arrivals, IsEmpty());
    EXPECT_THAT(fabric.hosts[1]->arrivals, SizeIs(1));
    EXPECT_THAT(fabric.hosts[2]->arrivals, IsEmpty());
    EXPECT_THAT(fabric.hosts[3]->arrivals, SizeIs(1));
    EXPECT_THAT(fabric.hosts[4]->arrivals, IsEmpty());
    EXPECT_EQ(cargo.retained, 1);
    EXPECT_EQ(cargo.released, 2);
    EXPECT_EQ(switch_port(fabric, 1).counters().rcv_multicast_packets, 1U);
    EXPECT_EQ(switch_port(fabric, 2).counters().xmit_multicast_packets, 1U);
    EXPECT_EQ(switch_port(fabric, 1).counters().total_discards(), 0U);
    EXPECT_EQ(fabric.port_of(0).outgoing()->unused_credits(0),
              fabric.port_of(0).outgoing()->credit_limit());
}

TEST(SwitchMulticast, AGroupThatNobodyIsInHasNoRoute) {
    RunningFabric fabric("star:2");
    send_to_group(fabric, 0);
    fabric.run();
    EXPECT_EQ(switch_port(fabric, 1).counters().discarded(DropReason::kNoRoute), 1U);
    EXPECT_EQ(switch_port(fabric, 1).counters().rcv_switch_relay_errors(), 1U);

    fabric.network.switch_at(0).set_multicast_table({{kGroup, {1}}});
    send_to_group(fabric, 0);  // only the sender is a member
    fabric.run();
    EXPECT_EQ(switch_port(fabric, 1).counters().total_discards(), 1U);
    EXPECT_EQ(fabric.network.frames().live(), 0U);
    EXPECT_EQ(fabric.port_of(0).outgoing()->unused_credits(0),
              fabric.port_of(0).outgoing()->credit_limit());
}

TEST(Pkeys, MatchWithOneFullMember) {
    EXPECT_TRUE(pkeys_match(0x8001, 0x0001));
    EXPECT_TRUE(pkeys_match(0x8001, 0x8001));
    EXPECT_FALSE(pkeys_match(0x0001, 0x0001));
    EXPECT_FALSE(pkeys_match(0x8001, 0x8002));
    EXPECT_FALSE(pkeys_match(0x8000, 0x8000));
    EXPECT_TRUE(admits({0, 0x8003}, 0x0003));
    EXPECT_FALSE(admits({0, 0x8003}, 0x8000));
}

TEST(SwitchPartitions, LimitedMembersSendAsThatOnly) {
    EXPECT_TRUE(may_send({0x0001}, 0x0001));
    EXPECT_FALSE(may_send({0x0001}, 0x8001));
    EXPECT_TRUE(may_send({0x8001}, 0x0001));
    EXPECT_TRUE(may_send({0x8001}, 0x8001));
    EXPECT_FALSE(may_send({0x8001}, 0x8003));
    EXPECT_FALSE(may_send({0x8000, 0}, 0));
}

TEST(SwitchPartitions, AreEnforcedWhereAskedAndCounted) {
    RunningFabric fabric("star:2");
    fabric.network.switch_at(0).set_multicast_table({{kGroup, {1, 2}}});
    switch_port(fabric, 1).mutable_attributes().pkeys = {0x8001};
    switch_port(fabric, 2).mutable_attributes().pkeys = {0x8002};
    send_to_group(fabric, 0, nullptr, 0x8003);
    fabric.run();
    EXPECT_THAT(fabric.hosts[1]->arrivals, SizeIs(1)) << "nobody enforces yet";

    switch_port(fabric, 2).mutable_attributes().enforces_partitions_out = true;
    send_to_group(fabric, 0, nullptr, 0x8003);
    send_to_group(fabric, 0, nullptr, 0x0002);
    fabric.run();
    EXPECT_THAT(fabric.hosts[1]->arrivals, SizeIs(2));
    EXPECT_EQ(switch_port(fabric, 2).counters().xmit_constraint_errors(), 1U);

    switch_port(fabric, 1).mutable_attributes().enforces_partitions_in = true;
    send_to_group(fabric, 0, nullptr, 0x8002);
    fabric.run();
    EXPECT_THAT(fabric.hosts[1]->arrivals, SizeIs(2));
    EXPECT_EQ(switch_port(fabric, 1).counters().rcv_constraint_errors(), 1U);
    EXPECT_EQ(switch_port(fabric, 1).counters().xmit_discards(), 0U);
    EXPECT_EQ(fabric.port_of(0).outgoing()->unused_credits(0),
              fabric.port_of(0).outgoing()->credit_limit());
}

// Service level 1 from port 1 has no lane of port 3, from port 2 it has.
TEST(SwitchLanes, DependOnBothPorts) {
    Topology topology = make_star(3);
    for (LinkSpec& link : topology.links) {
        link.vls = 2;
    }
    RunningFabric fabric(std::move(topology));
    SlToVl none;
    none.fill(15);
    SlToVl second;
    second.fill(1);
    switch_port(fabric, 3).mutable_attributes().sl_to_vl = {second, none, second};
    fabric.send(0, 2, 10, 1024, 1);
    fabric.send(1, 2, 11, 1024, 1);
    fabric.run();
    ASSERT_THAT(fabric.hosts[2]->arrivals, SizeIs(1));
    EXPECT_EQ(fabric.hosts[2]->arrivals[0].number, 11U);
    EXPECT_EQ(switch_port(fabric, 1).counters().discarded(DropReason::kNoLane), 1U);
    EXPECT_EQ(switch_port(fabric, 1).counters().rcv_switch_relay_errors(), 1U);
    EXPECT_EQ(fabric.port_of(0).outgoing()->unused_credits(0),
              fabric.port_of(0).outgoing()->credit_limit());
}

}  // namespace
}  // namespace fabric
