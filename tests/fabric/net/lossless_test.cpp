// InfiniBand loses nothing: credits, lanes and who goes first.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/net/link_direction.hpp"

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::Arrival;
using test::RunningFabric;
using testing::ElementsAre;

constexpr std::uint32_t kLarge = 4096 + test::kHeaderBytes;  // 65 blocks, 329.76 ns

Topology with_buffers(Topology topology, std::uint32_t bytes, std::uint8_t data_vls = 1) {
    for (LinkSpec& link : topology.links) {
        link.buffer_bytes = bytes;
        link.vls = data_vls;
    }
    return topology;
}

void expect_all_credits_back(const RunningFabric& fabric) {
    for (std::size_t i = 0; i < fabric.network.link_count(); ++i) {
        for (const std::size_t end : {0U, 1U}) {
            LinkDirection& direction = *fabric.network.link(i).end(end).outgoing();
            for (std::uint8_t lane = 0; lane < kMaxDataVls; ++lane) {
                EXPECT_EQ(direction.unused_credits(lane), direction.credit_limit())
                    << fabric.network.link(i).name() << " lane " << int{lane};
            }
        }
    }
}

std::vector<std::uint32_t> numbers(const std::vector<Arrival>& arrivals) {
    std::vector<std::uint32_t> all;
    all.reserve(arrivals.size());
    for (const Arrival& arrival : arrivals) {
        all.push_back(arrival.number);
    }
    return all;
}

void send_management(RunningFabric& fabric, std::size_t from, std::size_t to,
                     std::uint32_t number) {
    FramePtr frame = fabric.network.frames().make();
    frame->source = fabric.network.host(from).id();
    frame->slid = fabric.port_of(from).attributes().lid;
    frame->dlid = fabric.port_of(to).attributes().lid;
    frame->wire_bytes = 290;
    frame->vl = kManagementVl;
    frame->transport_as<std::uint32_t>() = number;
    fabric.port_of(from).send(std::move(frame));
}

class ManagementSender final : public EventHandler {
  public:
    explicit ManagementSender(RunningFabric& fabric) : fabric_(fabric) {}
    void handle(const Event& event) override {
        send_management(fabric_, 0, 1, static_cast<std::uint32_t>(event.argument));
    }

  private:
    RunningFabric& fabric_;
};

// The buffer takes two frames. The third starts when the credits of the first are back: it has
// arrived 829.76 ns after its start, and the news takes 500 ns.
TEST(Credits, AFullBufferMakesTheSenderWait) {
    RunningFabric fabric(with_buffers(make_pair(), 8448));
    for (std::uint32_t i = 0; i < 4; ++i) {
        fabric.send(0, 1, i, kLarge);
    }
    EXPECT_FALSE(fabric.port_of(0).outgoing()->starves(0)) << "a host's credits do come back";
    EXPECT_GT(fabric.port_of(0).outgoing()->waiting_bytes(0), 0U);
    fabric.run();
    EXPECT_THAT(
        fabric.hosts[1]->arrivals,
        ElementsAre(Arrival{kSimStart + 829'760_ps, 0}, Arrival{kSimStart + 1'159'520_ps, 1},
                    Arrival{kSimStart + 2'159'520_ps, 2}, Arrival{kSimStart + 2'489'280_ps, 3}));
    // From 659.52 ns to 1329.76 ns, in ticks of 640 ps; the fourth follows the third at once.
    EXPECT_EQ(fabric.port_of(0).counters().xmit_wait, 1047U);
    expect_all_credits_back(fabric);
}

TEST(Credits, TheUsualBufferNeverMakesOneFlowWait) {
    std::vector<std::vector<Arrival>> arrivals;
    for (const std::uint32_t bytes : {0U, kMaxBufferBytes}) {
        RunningFabric fabric(with_buffers(make_star(2), bytes));
        for (std::uint32_t i = 0; i < 300; ++i) {
            fabric.send(0, 1, i, i % 3 == 0 ? kLarge : 100);
        }
        fabric.run();
        EXPECT_EQ(fabric.port_of(0).counters().xmit_wait, 0U);
        arrivals.push_back(fabric.hosts[1]->arrivals);
        expect_all_credits_back(fabric);
    }
    ASSERT_EQ(arrivals[0].size(), 300U);
    EXPECT_EQ(arrivals[0], arrivals[1]);
}

TEST(Credits, NothingIsPendingWhenAllHasArrived) {
    RunningFabric fabric(with_buffers(make_star(3), 8448));
    for (std::uint32_t i = 0; i < 20; ++i) {
        fabric.send(0, 2, i, kLarge);
        fabric.send(1, 2, i, kLarge);
    }
    fabric.run();
    EXPECT_TRUE(fabric.loop.empty());
    EXPECT_EQ(to_picoseconds(fabric.loop.now()),
              to_picoseconds(fabric.hosts[2]->arrivals.back().time));
}

// The switch has room for three frames of each sender; the receiver's link is always busy.
Topology make_incast() {
    Topology topology = with_buffers(make_star(3), 16'384);
    topology.links[2].buffer_bytes = kMaxBufferBytes;
    return topology;
}

// Both get half, over any time.
TEST(Incast, OfTwoIsFairAndLosesNothing) {
    RunningFabric fabric(make_incast());
    constexpr std::uint32_t kFrames = 400;
    for (std::uint32_t i = 0; i < kFrames; ++i) {
        fabric.send(0, 2, 0, kLarge);
        fabric.send(1, 2, 1, kLarge);
    }
    fabric.run();
    const std::vector<std::uint32_t> order = numbers(fabric.hosts[2]->arrivals);
    ASSERT_EQ(order.size(), 2 * kFrames);
    int lead = 0;
    int most = 0;
    for (const std::uint32_t sender : order) {
        lead += sender == 0 ? 1 : -1;
        most = std::max(most, std::abs(lead));
    }
    EXPECT_EQ(lead, 0);
    EXPECT_LE(most, 2);
    // Without a gap: the last has arrived after 800 transmissions behind the first one's head.
    EXPECT_EQ(fabric.hosts[2]->arrivals.back().time,
              kSimStart + 5'120_ps + 600_ns + 800 * 329'760_ps + 500_ns);
    const Switch& middle = fabric.network.switch_at(0);
    for (std::uint16_t number = 1; number <= 3; ++number) {
        EXPECT_EQ(middle.port(PortNumber{number}).counters().total_discards(), 0U);
    }
    for (const std::size_t host : {0U, 1U}) {
        EXPECT_EQ(fabric.port_of(host).counters().total_discards(), 0U);
        EXPECT_GT(fabric.port_of(host).counters().xmit_wait, 0U);
    }
    expect_all_credits_back(fabric);
}

TEST(Incast, FillsNoMoreThanTheBuffersOfTheSwitch) {
    RunningFabric fabric(make_incast());
    for (std::uint32_t i = 0; i < 100; ++i) {
        fabric.send(0, 2, 0, kLarge);
        fabric.send(1, 2, 1, kLarge);
    }
    const LinkDirection& out = *fabric.network.switch_at(0).port(PortNumber{3}).outgoing();
    std::size_t most = 0;
    while (fabric.loop.run_instant() != 0) {
        std::size_t waiting = 0;
        out.for_each_waiting(0, [&waiting](const Frame&) { ++waiting; });
        most = std::max(most, waiting);
    }
    EXPECT_LE(most, 2 * 16'384 / kLarge);
    EXPECT_GE(most, 4U);
}

TEST(Credits, OfALinkThatGoesDownComeBack) {
    RunningFabric fabric(with_buffers(make_star(3), 8448));
    for (std::uint32_t i = 0; i < 10; ++i) {
        fabric.send(0, 2, i, kLarge);
        fabric.send(1, 2, i, kLarge);
    }
    fabric.loop.run_until(kSimStart + 2_us);
    fabric.network.link("h2-s0").set_state(LinkState::kDown);
    fabric.network.link("h0-s0").set_state(LinkState::kDown);
    fabric.run();
    EXPECT_EQ(fabric.network.frames().live(), 0U);
    expect_all_credits_back(fabric);
}

// A thousand data frames wait, and the management datagram is next all the same.
TEST(Lanes, ManagementOvertakesWhatHasNotStarted) {
    RunningFabric fabric("pair");
    for (std::uint32_t i = 0; i < 1000; ++i) {
        fabric.send(0, 1, i, kLarge);
    }
    ManagementSender sender(fabric);
    fabric.loop.schedule({kSimStart + 100_ns,
                          EventKey(EventClass::kApplication, NodeId{7}, PortNumber{1}, 0), &sender,
                          5000});
    fabric.run();
    const std::vector<Arrival>& arrivals = fabric.hosts[1]->arrivals;
    ASSERT_EQ(arrivals.size(), 1001U);
    EXPECT_EQ(arrivals[0], (Arrival{kSimStart + 829'760_ps, 0}));
    EXPECT_EQ(arrivals[1], (Arrival{kSimStart + 329'760_ps + 290 * 80_ps + 500_ns, 5000}));
    EXPECT_EQ(arrivals[2].number, 1U);
    EXPECT_EQ(arrivals.back(),
              (Arrival{kSimStart + 1000 * 329'760_ps + 290 * 80_ps + 500_ns, 999}));
    EXPECT_EQ(fabric.port_of(0).counters().xmit_packets, 1001U);
    expect_all_credits_back(fabric);
}

// From the next frame on: the one on the wire ends as it began.
TEST(Lanes, ANewRateIsForWhatHasNotStarted) {
    RunningFabric fabric("pair");
    for (std::uint32_t i = 0; i < 3; ++i) {
        fabric.send(0, 1, i, kLarge);
    }
    ManagementSender nothing(fabric);
    fabric.loop.schedule({kSimStart + 100_ns,
                          EventKey(EventClass::kApplication, NodeId{7}, PortNumber{1}, 0), &nothing,
                          5000});
    fabric.loop.run_until(kSimStart + 100_ns);
    fabric.network.link(0).set_rate(LinkWidth::k4x, LinkSpeed::kSdr);  // 1 ns a byte
    fabric.run();
    EXPECT_THAT(fabric.hosts[1]->arrivals,
                ElementsAre(Arrival{kSimStart + 829'760_ps, 0},
                            Arrival{kSimStart + 329'760_ps + 290_ns + 500_ns, 5000},
                            Arrival{kSimStart + 329'760_ps + 290_ns + 4122_ns + 500_ns, 1},
                            Arrival{kSimStart + 329'760_ps + 290_ns + 8244_ns + 500_ns, 2}));
    expect_all_credits_back(fabric);
}

TEST(Lanes, WhatWaitsIsDroppedWhenThePortIsNotActiveAnyMore) {
    RunningFabric fabric(with_buffers(make_pair(), 8448));
    for (std::uint32_t i = 0; i < 5; ++i) {
        fabric.send(0, 1, i, kLarge);
    }
    fabric.loop.run_until(kSimStart + 829'760_ps);
    fabric.port_of(0).apply(PortTrigger::kRemoteInit);
    fabric.run();
    EXPECT_EQ(fabric.hosts[1]->arrivals.size(), 2U);
    EXPECT_EQ(fabric.port_of(0).counters().discarded(DropReason::kPortNotActive), 3U);
    expect_all_credits_back(fabric);
}

// VL15 knows no credits.
TEST(Lanes, ManagementPassesWhereDataIsBlocked) {
    RunningFabric fabric(with_buffers(make_pair(), 8448));
    for (std::uint32_t i = 0; i < 4; ++i) {
        fabric.send(0, 1, i, kLarge);
    }
    send_management(fabric, 0, 1, 100);
    fabric.run();
    EXPECT_THAT(numbers(fabric.hosts[1]->arrivals), ElementsAre(0, 100, 1, 2, 3));
}

class TwoLanes : public testing::Test {
  protected:
    TwoLanes() : fabric_(with_buffers(make_pair(), kMaxBufferBytes, 2)) {
        SlToVl lanes{};
        lanes[1] = 1;
        lanes[2] = 15;
        lanes[3] = 7;
        attributes().sl_to_vl = {lanes};
    }

    [[nodiscard]] PortAttributes& attributes() { return fabric_.port_of(0).mutable_attributes(); }
    // Returns the lane of each of the first arrivals.
    std::string lanes_of_arrivals(std::size_t count) {
        std::string lanes;
        for (std::size_t i = 0; i < count; ++i) {
            lanes += fabric_.hosts[1]->arrivals[i].number == 0 ? '0' : '1';
        }
        return lanes;
    }
    void send_alternately(int count) {
        for (int i = 0; i < count; ++i) {
            fabric_.send(0, 1, 0, kLarge, 0);
        }
        for (int i = 0; i < count; ++i) {
            fabric_.send(0, 1, 1, kLarge, 1);
        }
        fabric_.run();
    }

    RunningFabric fabric_;
};

TEST_F(TwoLanes, TakeTurnsWithoutTables) {
    send_alternately(6);
    // The first had gone before there was a choice.
    EXPECT_EQ(lanes_of_arrivals(12), "001010101011");
    expect_all_credits_back(fabric_);
}

TEST_F(TwoLanes, ShareByWeight) {
    attributes().vl_arbitration.low = {{0, 65}, {1, 3 * 65}};
    send_alternately(9);
    EXPECT_EQ(lanes_of_arrivals(12), "001110111011");
}

TEST_F(TwoLanes, HighPriorityComesFirst) {
    attributes().vl_arbitration.high = {{1, 255}};
    attributes().vl_arbitration.low = {{0, 255}};
    attributes().vl_arbitration.high_limit = VlArbitrationTables::kNoHighLimit;
    send_alternately(5);
    EXPECT_EQ(lanes_of_arrivals(10), "0111110000");
}

TEST_F(TwoLanes, HaveBuffersOfTheirOwn) {
    RunningFabric fabric(with_buffers(make_pair(), 8448, 2));
    SlToVl lanes{};
    lanes[1] = 1;
    fabric.port_of(0).mutable_attributes().sl_to_vl = {lanes};
    for (std::uint32_t i = 0; i < 3; ++i) {
        fabric.send(0, 1, i, kLarge, 0);
    }
    fabric.send(0, 1, 10, kLarge, 1);
    fabric.run();
    EXPECT_THAT(numbers(fabric.hosts[1]->arrivals), testing::UnorderedElementsAre(0, 1, 2, 10));
    EXPECT_EQ(fabric.hosts[1]->arrivals.back().number, 2U);
    expect_all_credits_back(fabric);
}

// IBA 7.6.6: lane 15, and a lane that is not in operation.
TEST_F(TwoLanes, AServiceLevelWithoutALaneIsDiscarded) {
    fabric_.send(0, 1, 0, 100, 2);
    fabric_.send(0, 1, 0, 100, 3);
    fabric_.run();
    EXPECT_TRUE(fabric_.hosts[1]->arrivals.empty());
    EXPECT_EQ(fabric_.port_of(0).counters().discarded(DropReason::kNoLane), 2U);
}

TEST(LosslessTopology, FindsEachMistake) {
    Topology topology = make_pair();
    topology.links[0].buffer_bytes = 8447;
    EXPECT_THAT(topology.error().value_or(""), testing::HasSubstr("8448 to 131072"));
    topology.links[0].buffer_bytes = 131'073;
    EXPECT_TRUE(topology.error().has_value());
    topology.links[0].buffer_bytes = 0;
    EXPECT_FALSE(topology.error().has_value());
    topology.links[0].vls = 3;
    EXPECT_THAT(topology.error().value_or(""), testing::HasSubstr("3 VLs"));
}

}  // namespace
}  // namespace fabric
