// Ethernet switches with each other: ways, queues, marks and pauses.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/net/link_direction.hpp"

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::RunningFabric;
using testing::Each;
using testing::SizeIs;

constexpr MacAddress kBroadcast{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};
constexpr std::uint32_t kData = 1500;
constexpr std::uint32_t kWire = 1538;

// Two hosts on each of two leaves, two spines that join them.
Topology make_two_level(const EthernetQueueing& queueing = {}) {
    Topology topology;
    for (const char* name : {"h0", "h1", "h2", "h3"}) {
        topology.nodes.push_back({name, NodeKind::kHca, 1});
    }
    for (const char* name : {"s0", "s1"}) {
        topology.nodes.push_back({name, NodeKind::kSwitch, 4});
    }
    for (const char* name : {"s2", "s3"}) {
        topology.nodes.push_back({name, NodeKind::kSwitch, 2});
    }
    const auto join = [&topology, &queueing](std::string a, std::uint16_t port_a, std::string b,
                                             std::uint16_t port_b) {
        LinkSpec link;
        link.a = {std::move(a), PortNumber{port_a}};
        link.b = {std::move(b), PortNumber{port_b}};
        link.layer = LinkLayer::kEthernet;
        link.queueing = queueing;
        topology.links.push_back(link);
    };
    join("h0", 1, "s0", 1);
    join("h1", 1, "s0", 2);
    join("h2", 1, "s1", 1);
    join("h3", 1, "s1", 2);
    join("s0", 3, "s2", 1);
    join("s0", 4, "s3", 1);
    join("s1", 3, "s2", 2);
    join("s1", 4, "s3", 2);
    return topology;
}

struct Marks {
    std::uint32_t flow = 0;
    Ecn ecn = Ecn::kNotCapable;
    std::uint8_t sl = 0;
    std::uint16_t vlan = 0;
};

void send(RunningFabric& fabric, std::size_t from, const MacAddress& to, std::uint32_t number,
          const Marks& marks = {}) {
    FramePtr frame = fabric.network.frames().make();
    frame->source = fabric.network.host(from).id();
    frame->source_mac = fabric.port_of(from).attributes().mac;
    frame->destination_mac = to;
    frame->vlan = marks.vlan;
    frame->flow = marks.flow;
    frame->ecn = marks.ecn;
    frame->sl = marks.sl;
    frame->payload_bytes = kData;
    frame->wire_bytes = kWire;
    frame->transport_as<std::uint32_t>() = number;
    fabric.port_of(from).send(std::move(frame));
}

const MacAddress& mac_of(const RunningFabric& fabric, std::size_t host) {
    return fabric.port_of(host).attributes().mac;
}

std::uint64_t sent(const RunningFabric& fabric, std::string_view node, std::uint16_t port) {
    return fabric.network.find_node(node)->port(PortNumber{port}).counters().xmit_packets;
}

std::uint64_t discarded(const RunningFabric& fabric, DropReason reason) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < fabric.network.switch_count(); ++i) {
        const Switch& one = fabric.network.switch_at(i);
        for (std::uint16_t number = 1; number <= one.port_count(); ++number) {
            sum += one.port(PortNumber{number}).counters().discarded(reason);
        }
    }
    return sum;
}

TEST(EthernetFabric, FlowsSpreadAndEachStaysInOrder) {
    RunningFabric fabric(make_two_level());
    for (std::uint32_t i = 0; i < 10; ++i) {
        for (std::uint32_t flow = 0; flow < 32; ++flow) {
            send(fabric, 0, mac_of(fabric, 2), flow * 100 + i, {.flow = flow});
        }
    }
    fabric.run();
    ASSERT_THAT(fabric.hosts[2]->arrivals, SizeIs(320));
    std::vector<std::uint32_t> next(32);
    for (const test::Arrival& arrival : fabric.hosts[2]->arrivals) {
        EXPECT_EQ(arrival.number % 100, next[arrival.number / 100]++);
    }
    EXPECT_EQ(sent(fabric, "s0", 3) + sent(fabric, "s0", 4), 320U);
    EXPECT_GE(sent(fabric, "s0", 3), 80U);
    EXPECT_GE(sent(fabric, "s0", 4), 80U);
    EXPECT_EQ(sent(fabric, "s0", 3) % 10, 0U) << "a flow takes one way";
    EXPECT_THAT(fabric.hosts[3]->arrivals, SizeIs(0));
}

TEST(EthernetFabric, GroupsAndStrangersReachEachHostOnce) {
    RunningFabric fabric(make_two_level());
    send(fabric, 1, kBroadcast, 7);
    send(fabric, 1, MacAddress{{0x66, 1, 2, 3, 4, 5}}, 8);
    fabric.run();
    EXPECT_TRUE(fabric.loop.empty());
    for (const std::size_t host : {0U, 2U, 3U}) {
        EXPECT_THAT(fabric.hosts[host]->arrivals, SizeIs(2)) << host;
    }
    EXPECT_THAT(fabric.hosts[1]->arrivals, SizeIs(0));
    EXPECT_EQ(fabric.network.frames().live(), 0U);
}

TEST(EthernetFabric, GoesRoundALinkThatIsDown) {
    RunningFabric fabric(make_two_level());
    fabric.network.link("s0-s2").set_state(LinkState::kDown);
    for (std::uint32_t flow = 0; flow < 32; ++flow) {
        send(fabric, 0, mac_of(fabric, 2), flow, {.flow = flow});
    }
    send(fabric, 0, kBroadcast, 100);
    fabric.run();
    EXPECT_THAT(fabric.hosts[2]->arrivals, SizeIs(33));
    EXPECT_THAT(fabric.hosts[3]->arrivals, SizeIs(1));
    fabric.network.link("s0-s2").set_state(LinkState::kUp);
    for (std::uint32_t flow = 0; flow < 32; ++flow) {
        send(fabric, 0, mac_of(fabric, 2), flow, {.flow = flow});
    }
    fabric.run();
    EXPECT_GT(sent(fabric, "s0", 3), 0U);
    fabric.network.link("s0-s2").set_state(LinkState::kDown);
    fabric.network.link("s0-s3").set_state(LinkState::kDown);
    send(fabric, 0, mac_of(fabric, 2), 0);
    fabric.run();
    EXPECT_EQ(discarded(fabric, DropReason::kNoRoute), 1U);
}

TEST(EthernetFabric, AVlanPassesWhereTheLinkHasIt) {
    Topology topology = make_two_level();
    const auto vlans_of = [&topology](std::string_view a, std::string_view b) -> auto& {
        return std::ranges::find_if(
                   topology.links,
                   [a, b](const LinkSpec& link) { return link.a.node == a && link.b.node == b; })
            ->vlans;
    };
    vlans_of("s0", "s2") = vlans_of("s0", "s3") = {200};
    vlans_of("h3", "s1") = std::vector<std::uint16_t>();
    RunningFabric fabric(std::move(topology));
    const auto send_tagged = [&fabric](const MacAddress& to, std::uint16_t vlan) {
        send(fabric, 0, to, vlan, {.vlan = vlan});
        fabric.run();
    };
    const auto arrived = [&fabric](std::size_t host) {
        return fabric.hosts[host]->arrivals.size();
    };
    send_tagged(mac_of(fabric, 1), 100);
    EXPECT_EQ(arrived(1), 1U) << "all VLANs pass a link that names none";
    send_tagged(mac_of(fabric, 2), 100);
    EXPECT_EQ(arrived(2), 0U);
    EXPECT_EQ(discarded(fabric, DropReason::kVlan), 1U);
    send_tagged(mac_of(fabric, 2), 200);
    EXPECT_EQ(arrived(2), 1U);
    send_tagged(mac_of(fabric, 3), 200);
    EXPECT_EQ(arrived(3), 0U) << "no VLAN passes an empty list";
    send_tagged(mac_of(fabric, 3), 0);
    EXPECT_EQ(arrived(3), 1U);
    EXPECT_EQ(discarded(fabric, DropReason::kVlan), 2U);

    send_tagged(kBroadcast, 100);
    EXPECT_EQ(arrived(1), 2U);
    EXPECT_EQ(arrived(2), 1U);
    send_tagged(kBroadcast, 200);
    EXPECT_EQ(arrived(1), 3U);
    EXPECT_EQ(arrived(2), 2U);
    EXPECT_EQ(arrived(3), 1U);
    EXPECT_EQ(discarded(fabric, DropReason::kVlan), 2U) << "nothing was meant for other ports";
    EXPECT_EQ(fabric.network.frames().live(), 0U);
}

// Three senders on one receiver, 300 frames each.
class EthernetIncast : public testing::Test {
  protected:
    static constexpr std::uint32_t kFrames = 300;

    void run(const EthernetQueueing& queueing, Ecn ecn = Ecn::kNotCapable, std::uint8_t sl = 0,
             std::uint64_t seed = 0) {
        Topology topology = make_star(4, LinkLayer::kEthernet);
        for (LinkSpec& link : topology.links) {
            link.queueing = queueing;
        }
        fabric_ = std::make_unique<RunningFabric>(std::move(topology));
        fabric_->network.set_seed(seed);
        for (std::uint32_t i = 0; i < kFrames; ++i) {
            for (std::size_t host = 0; host < 3; ++host) {
                send(*fabric_, host, mac_of(*fabric_, 3), i, {.ecn = ecn, .sl = sl});
            }
        }
        const LinkDirection& out = *way_out().outgoing();
        while (fabric_->loop.run_instant() != 0) {
            std::uint64_t waiting = 0;
            out.for_each_waiting(sl % kPriorities,
                                 [&waiting](const Frame& frame) { waiting += frame.wire_bytes; });
            longest_ = std::max(longest_, waiting);
        }
        EXPECT_EQ(arrived() + way_out().counters().total_discards(), 3 * kFrames);
        EXPECT_EQ(fabric_->network.frames().live(), 0U);
    }

    [[nodiscard]] const Port& way_out() const {
        return fabric_->network.switch_at(0).port(PortNumber{4});
    }
    [[nodiscard]] std::size_t arrived() const { return fabric_->hosts[3]->arrivals.size(); }
    [[nodiscard]] std::uint64_t pauses() const {
        std::uint64_t sum = 0;
        for (std::uint16_t number = 1; number <= 4; ++number) {
            sum += fabric_->network.switch_at(0).port(PortNumber{number}).counters().pauses_sent;
        }
        return sum;
    }

    std::unique_ptr<RunningFabric> fabric_;
    std::uint64_t longest_ = 0;
};

TEST_F(EthernetIncast, DropsWhatFindsTheQueueFull) {
    run({.queue_bytes = 20 * kWire, .paused_priorities = 0});
    EXPECT_EQ(longest_, 20 * kWire);
    EXPECT_GT(way_out().counters().discarded(DropReason::kQueueFull), 500U);
    EXPECT_EQ(way_out().counters().xmit_discards(),
              way_out().counters().discarded(DropReason::kQueueFull));
    EXPECT_EQ(pauses(), 0U);
}

// Up to 64 KiB of each sender, and what is on the way until the pause has arrived: two latencies,
// the pause frame, a frame that had begun and one that ends: less than 16 KiB.
TEST_F(EthernetIncast, PausesInsteadOfDropping) {
    run({.queue_bytes = 20 * kWire,
         .paused_priorities = 1U << 3,
         .pause_bytes = 64 * 1024,
         .resume_bytes = 32 * 1024},
        Ecn::kNotCapable, 3);
    EXPECT_EQ(arrived(), 3 * kFrames);
    EXPECT_GT(pauses(), 3U);
    EXPECT_GT(longest_, 3U * 64 * 1024);
    EXPECT_LT(longest_, 3U * (64 + 17) * 1024);
    EXPECT_GT(fabric_->port_of(0).counters().xmit_wait, 0U);
}

TEST_F(EthernetIncast, AnotherPriorityIsNotPaused) {
    run({.queue_bytes = 20 * kWire, .paused_priorities = 1U << 3}, Ecn::kNotCapable, 2);
    EXPECT_GT(way_out().counters().discarded(DropReason::kQueueFull), 500U);
    EXPECT_EQ(pauses(), 0U);
}

TEST_F(EthernetIncast, MarksByTheLengthOfTheQueue) {
    run({.mark_from_bytes = 20 * kWire, .mark_all_bytes = 60 * kWire}, Ecn::kCapable0);
    EXPECT_EQ(arrived(), 3 * kFrames);
    // All but the first of 60 that wait and the last of 900 meet a long queue.
    EXPECT_GT(way_out().counters().marked, 700U);
    EXPECT_LT(way_out().counters().marked, 870U);

    run({.mark_from_bytes = 20 * kWire, .mark_all_bytes = 60 * kWire}, Ecn::kNotCapable);
    EXPECT_EQ(way_out().counters().marked, 0U);
    run({.mark_from_bytes = 0, .mark_all_bytes = 0}, Ecn::kCapable0);
    EXPECT_EQ(way_out().counters().marked, 0U);
}

TEST_F(EthernetIncast, AMarkIsAMatterOfTheSeedAlone) {
    const EthernetQueueing queueing{.queue_bytes = 0,
                                    .mark_from_bytes = 0,
                                    .mark_all_bytes = 0xFFFF'FFFF,
                                    .mark_probability = {1, 1}};
    EthernetQueueing half = queueing;
    half.mark_all_bytes = 600 * kWire;
    std::set<std::uint64_t> counts;
    for (const std::uint64_t seed : {1U, 1U, 2U, 3U}) {
        run(half, Ecn::kCapable1, 0, seed);
        counts.insert(way_out().counters().marked);
        EXPECT_GT(way_out().counters().marked, 300U);
        EXPECT_LT(way_out().counters().marked, 600U);
    }
    EXPECT_GE(counts.size(), 2U);
    EXPECT_LE(counts.size(), 3U);
    run(queueing, Ecn::kCapable1);
    EXPECT_LT(way_out().counters().marked, 5U);
}

// Priorities take turns: a short flow does not wait behind a long one.
TEST(EthernetPriorities, HaveQueuesOfTheirOwn) {
    RunningFabric fabric("eth-star:3");
    for (std::uint32_t i = 0; i < 100; ++i) {
        send(fabric, 0, mac_of(fabric, 2), i, {.sl = 1});
        send(fabric, 1, mac_of(fabric, 2), 100 + i, {.sl = 1});
    }
    fabric.loop.run_until(kSimStart + 3_us);
    send(fabric, 1, mac_of(fabric, 2), 1000, {.sl = 5});
    fabric.run();
    const auto& arrivals = fabric.hosts[2]->arrivals;
    const auto late = std::find_if(arrivals.begin(), arrivals.end(),
                                   [](const auto& arrival) { return arrival.number == 1000; });
    ASSERT_NE(late, arrivals.end());
    EXPECT_LT(late - arrivals.begin(), 40);
}

}  // namespace
}  // namespace fabric
