// Management ports on Ethernet: queue pair 1, reached by GIDs of RoCE v1 and v2.
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/faults/frame_actions.hpp"
#include "fabric/trace/memory_sink.hpp"

#include "tests/fabric/mad/managed_fabric.hpp"

namespace fabric {
namespace {

using mad::Datagram;
using mad::Method;
using test::make_datagram;
using test::ManagedFabric;
using test::RecordingClient;
using test::smp_agent;

constexpr std::uint8_t kRoceV1LinkLocal = 0;
constexpr std::uint8_t kRoceV2LinkLocal = 1;
constexpr std::uint8_t kRoceV1 = 2;
constexpr std::uint8_t kRoceV2 = 3;
constexpr std::uint8_t kRoceV2InVlan = 7;

AgentSpec server() {
    AgentSpec spec{.management_class = static_cast<std::uint8_t>(mad::Class::kCommunication),
                   .class_version = 2,
                   .makes_transaction_ids = true};
    spec.methods.set(static_cast<std::size_t>(Method::kSend));
    return spec;
}

Datagram message() {
    Datagram made = make_datagram(mad::Class::kCommunication, Method::kSend, 0x0010);
    made.set(mad::header::kClassVersion, 2);
    return made;
}

class EthernetPorts : public testing::Test {
  protected:
    explicit EthernetPorts(Topology topology = test::topology_of("eth-star:3"))
        : fabric(std::move(topology)) {
        fabric.bus.attach(trace, trace::CategorySet{trace::Category::kPacket});
    }
    DatagramAddress address(std::size_t host, std::uint8_t gid_index) const {
        return {.qp = kGeneralServicesQp,
                .qkey = kWellKnownQkey,
                .global = GlobalAddress{.gid = gids(host).at(gid_index).gid,
                                        .gid_index = gid_index,
                                        .hop_limit = 64,
                                        .traffic_class = 0x20,
                                        .flow_label = 0x12345}};
    }
    [[nodiscard]] const std::vector<GidEntry>& gids(std::size_t host) const {
        return fabric.port_of(host).attributes().gids;
    }
    // Returns the length of each frame that the port of `host` sent.
    [[nodiscard]] std::vector<std::uint64_t> wire_bytes(std::size_t host) const {
        std::vector<std::uint64_t> bytes;
        for (const trace::TraceRecord& record : trace.records()) {
            if (record.name == "frame_sent" && record.node == fabric.network.host(host).id()) {
                bytes.push_back(record.number("wire_bytes"));
            }
        }
        return bytes;
    }

    ManagedFabric fabric;
    trace::MemorySink trace;
};

TEST_F(EthernetPorts, TakeDatagramsThatComeToAnyOfTheirGids) {
    RecordingClient sender(fabric, fabric.port(0), server());
    RecordingClient receiver(fabric, fabric.port(1), server());
    for (const std::uint8_t index : {kRoceV1LinkLocal, kRoceV2LinkLocal, kRoceV1, kRoceV2}) {
        ASSERT_EQ(sender.send(message(), address(1, index), {}), 0);
        fabric.run();
        ASSERT_EQ(receiver.received.size(), index + 1U);
        const DatagramAddress& from = receiver.received.back().from;
        EXPECT_EQ(from.lid, kNoLid);
        EXPECT_EQ(from.qp, kGeneralServicesQp);
        EXPECT_EQ(from.qkey, kWellKnownQkey);
        ASSERT_TRUE(from.global);
        EXPECT_EQ(from.global->gid, gids(0)[index].gid);
        EXPECT_EQ(from.global->gid_index, index);
        EXPECT_EQ(from.global->hop_limit, 64);
        EXPECT_EQ(from.global->traffic_class, 0x20);
        EXPECT_EQ(from.global->flow_label, 0x12345U);
        ASSERT_EQ(receiver.send(message(), from, {}), 0);
        fabric.run();
        EXPECT_EQ(sender.received.size(), index + 1U) << "what came leads back";
    }
}

// BTH, DETH, datagram and ICRC are 280 bytes, the Ethernet header, check sequence and gap 38.
TEST_F(EthernetPorts, SendFramesOfTheLengthThatTheirHeadersMake) {
    RecordingClient sender(fabric, fabric.port(0), server());
    for (const std::uint8_t index : {kRoceV1LinkLocal, kRoceV2LinkLocal, kRoceV1, kRoceV2}) {
        ASSERT_EQ(sender.send(message(), address(1, index), {}), 0);
    }
    fabric.run();
    DatagramAddress with_priority = address(1, kRoceV2);
    with_priority.sl = 5;
    ASSERT_EQ(sender.send(message(), with_priority, {}), 0);
    fabric.run();
    EXPECT_THAT(wire_bytes(0), testing::ElementsAre(40 + 280 + 38, 40 + 8 + 280 + 38, 40 + 280 + 38,
                                                    20 + 8 + 280 + 38, 4 + 20 + 8 + 280 + 38));
}

TEST_F(EthernetPorts, RefuseAddressesThatLeadNowhere) {
    RecordingClient sender(fabric, fabric.port(0), server());
    DatagramAddress to = address(1, kRoceV2);
    to.global.reset();
    to.lid = Lid{1};
    EXPECT_EQ(sender.send(message(), to), EINVAL) << "no global address";
    to = address(1, kRoceV2);
    to.global->gid_index = 4;
    EXPECT_EQ(sender.send(message(), to), EINVAL) << "the port has four GIDs";
    to.global->gid_index = kRoceV2LinkLocal;
    EXPECT_EQ(sender.send(message(), to), EINVAL) << "of another address family";
    to = address(1, kRoceV2);
    to.global->gid = ipv4_mapped(0x7F4D'0009);
    EXPECT_EQ(sender.send(message(), to), ETIMEDOUT) << "nobody has the address";
    EXPECT_TRUE(fabric.loop.empty()) << "nothing is sent, and nothing waited for";
}

TEST_F(EthernetPorts, HaveNoQueuePairZero) {
    RecordingClient sender(fabric, fabric.port(0), server());
    EXPECT_FALSE(fabric.port(0).register_agent(smp_agent(), sender));
    DatagramAddress to = address(1, kRoceV2);
    to.qp = kSubnetManagementQp;
    ASSERT_EQ(sender.send(message(), to, {}), 0);
    fabric.run();
    EXPECT_EQ(fabric.port_of(1).counters().discarded(DropReason::kNoConsumer), 1U);
}

TEST_F(EthernetPorts, TalkToThemselvesWithoutTheWire) {
    RecordingClient sender(fabric, fabric.port(0), server());
    for (const std::uint8_t index : {kRoceV1LinkLocal, kRoceV2}) {
        sender.received.clear();
        ASSERT_EQ(sender.send(message(), address(0, index), {}), 0);
        EXPECT_TRUE(sender.received.empty()) << "not before the call returns";
        fabric.run();
        ASSERT_EQ(sender.received.size(), 1U);
        EXPECT_EQ(sender.received[0].from.global->gid, gids(0)[index].gid);
        EXPECT_EQ(sender.received[0].from.global->gid_index, index);
    }
    EXPECT_EQ(fabric.port_of(0).counters().xmit_packets, 0U);
}

TEST_F(EthernetPorts, DropFramesForOthersAndFramesWithoutTheQkey) {
    RecordingClient sender(fabric, fabric.port(0), server());
    RecordingClient receiver(fabric, fabric.port(1), server());
    DatagramAddress to = address(1, kRoceV1LinkLocal);
    to.global->gid = link_local_gid({{0x66, 1, 2, 3, 4, 5}});
    ASSERT_EQ(sender.send(message(), to, {}), 0) << "RoCE v1 looks no neighbour up";
    fabric.run();
    for (const std::size_t host : {1U, 2U}) {
        EXPECT_EQ(fabric.port_of(host).counters().discarded(DropReason::kNoConsumer), 1U)
            << "the switch floods it";
    }
    to = address(1, kRoceV2);
    to.qkey = 1;
    ASSERT_EQ(sender.send(message(), to, {}), 0);
    fabric.run();
    EXPECT_EQ(fabric.port_of(1).counters().discarded(DropReason::kNoConsumer), 2U);
    EXPECT_TRUE(receiver.received.empty());
}

TEST_F(EthernetPorts, AnswerForTheirAgentsAsOnInfiniband) {
    RecordingClient client(fabric, fabric.port(0), {});
    const auto answer = client.ask(make_datagram(mad::Class::kDeviceManagement, Method::kGet, 0x10),
                                   address(1, kRoceV2));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->get(mad::header::kStatus), 0x000CU) << "nobody takes it";
}

TEST_F(EthernetPorts, LoseDatagramsByFaults) {
    RecordingClient sender(fabric, fabric.port(0), server());
    RecordingClient receiver(fabric, fabric.port(1), server());
    const FrameFault lost(fabric.bus, FaultId(1), std::make_unique<EveryFrame>(),
                          OccasionRules{.nth = 2}, std::make_unique<DropFrame>(),
                          {&fabric.network.link("h0-s0").direction_from(fabric.port_of(0))});
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(sender.send(message(), address(1, kRoceV2), {}), 0);
    }
    fabric.run();
    EXPECT_EQ(receiver.received.size(), 2U);
}

// All have LID 0 and the same transaction id.
TEST_F(EthernetPorts, JoinTheSegmentsOfEachSender) {
    AgentSpec spec{.management_class = mad::vendor::kOpenIbPing,
                   .oui = {0x00, 0x14, 0x05},
                   .joins_rmpp = true};
    RecordingClient first(fabric, fabric.port(0), spec);
    RecordingClient second(fabric, fabric.port(1), spec);
    spec.methods.set(static_cast<std::size_t>(Method::kSend));
    RecordingClient receiver(fabric, fabric.port(2), spec);
    const auto message_of = [](std::uint8_t filling) {
        const Datagram headers =
            make_datagram(static_cast<mad::Class>(mad::vendor::kOpenIbPing), Method::kSend, 0);
        std::vector<std::uint8_t> bytes(headers.bytes.begin(), headers.bytes.end());
        bytes.resize(mad::vendor::kDataOffset);
        bytes.resize(2000, filling);
        mad::set(bytes, mad::vendor::kOui, mad::vendor::kOpenIbOui);
        mad::set(bytes, mad::rmpp::kVersion, 1);
        mad::set(bytes, mad::rmpp::kType, mad::rmpp::kData);
        mad::set(bytes, mad::rmpp::kActive, 1);
        return bytes;
    };
    const std::vector<std::uint8_t> ones = message_of(0x11);
    const std::vector<std::uint8_t> twos = message_of(0x22);
    const DatagramAddress to = address(2, kRoceV2);
    ASSERT_EQ(fabric.port(0).send(first.agent, {.bytes = ones, .to = to}), 0);
    ASSERT_EQ(fabric.port(1).send(second.agent, {.bytes = twos, .to = to}), 0);
    fabric.run();
    ASSERT_EQ(receiver.received.size(), 2U);
    for (const RecordingClient::Received& message : receiver.received) {
        ASSERT_EQ(message.bytes.size(), 2000U);
        const std::uint8_t filling = message.from.global->gid == gids(0)[kRoceV2].gid ? 0x11 : 0x22;
        EXPECT_THAT(
            std::vector(message.bytes.begin() + mad::vendor::kDataOffset, message.bytes.end()),
            testing::Each(filling));
    }
    for (const RecordingClient* const sender : {&first, &second}) {
        ASSERT_EQ(sender->finished.size(), 1U);
        EXPECT_EQ(sender->finished[0].outcome, SendOutcome::kSent);
    }
}

Topology two_hosts_in_a_vlan() {
    Topology topology = make_star(3, LinkLayer::kEthernet);
    topology.links[0].vlans = {100};
    topology.links[1].vlans = {100};
    return topology;
}

class EthernetPortsInAVlan : public EthernetPorts {
  protected:
    EthernetPortsInAVlan() : EthernetPorts(two_hosts_in_a_vlan()) {}
};

TEST_F(EthernetPortsInAVlan, SendWithItsTag) {
    RecordingClient sender(fabric, fabric.port(0), server());
    RecordingClient receiver(fabric, fabric.port(1), server());
    ASSERT_EQ(sender.send(message(), address(1, kRoceV2InVlan), {}), 0);
    fabric.run();
    ASSERT_EQ(receiver.received.size(), 1U);
    EXPECT_EQ(receiver.received[0].from.global->gid, gids(0)[kRoceV2InVlan].gid);
    EXPECT_EQ(receiver.received[0].from.global->gid_index, kRoceV2InVlan);
    EXPECT_THAT(wire_bytes(0), testing::ElementsAre(4 + 20 + 8 + 280 + 38));
    DatagramAddress to = address(2, kRoceV2);
    to.global->gid_index = kRoceV2InVlan;
    EXPECT_EQ(sender.send(message(), to), ETIMEDOUT) << "it is not in the VLAN";
}

TEST(MixedHosts, HaveAManagementPortOfEachLinkLayer) {
    const ManagedFabric fabric("vpi-pair");
    for (const std::uint16_t number : {std::uint16_t{1}, std::uint16_t{2}}) {
        EXPECT_EQ(fabric.port(0, number).port().number(), PortNumber{number});
    }
    const ManagedFabric star("eth-star:2");
    EXPECT_EQ(star.managed.find(star.network.switch_at(0).id()), nullptr);
}

}  // namespace
}  // namespace fabric
