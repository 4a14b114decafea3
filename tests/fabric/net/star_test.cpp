#include <gtest/gtest.h>

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::Arrival;
using test::RunningFabric;

TEST(Star, ForwardsByLidAndOnlyThere) {
    RunningFabric fabric("star:3");
    fabric.send(0, 2, 42);
    fabric.run();
    // 5.12 ns for the first 64 bytes, 500 ns of latency, 100 ns in the switch, 81.92 ns of
    // transmission and 500 ns of latency.
    EXPECT_EQ(fabric.hosts[2]->arrivals, (std::vector<Arrival>{{kSimStart + 1'187'040_ps, 42}}));
    EXPECT_TRUE(fabric.hosts[0]->arrivals.empty());
    EXPECT_TRUE(fabric.hosts[1]->arrivals.empty());
}

TEST(Star, TwoSendersToOneTakeTurnsInTheOrderOfTheirNodes) {
    RunningFabric fabric("star:3");
    fabric.send(1, 2, 101);
    fabric.send(0, 2, 100);
    fabric.run();
    EXPECT_EQ(fabric.hosts[2]->arrivals, (std::vector<Arrival>{{kSimStart + 1'187'040_ps, 100},
                                                               {kSimStart + 1'268'960_ps, 101}}));
}

TEST(Star, DropsWhatHasNoRouteOrNoConsumer) {
    RunningFabric fabric("star:2");
    const PortCounters& counters = fabric.network.switch_at(0).port(PortNumber{1}).counters();
    for (const Lid lid : {Lid{100}, Lid{3}, Lid{1}}) {
        FramePtr frame = fabric.network.frames().make();
        frame->dlid = lid;
        frame->wire_bytes = 64;
        fabric.port_of(0).send(std::move(frame));
    }
    fabric.run();
    EXPECT_EQ(counters.discarded(DropReason::kNoRoute), 1U);
    EXPECT_EQ(counters.discarded(DropReason::kNoConsumer), 1U);
    EXPECT_EQ(counters.discarded(DropReason::kBackToSender), 1U);
    EXPECT_EQ(counters.total_discards(), 3U);
}

TEST(Star, ALinkThatGoesDownTakesItsFramesAndNoOthers) {
    RunningFabric fabric("star:3");
    fabric.send(0, 1, 1);
    fabric.send(2, 1, 2);
    fabric.loop.run_until(kSimStart + 100_ns);
    fabric.network.link("h0-s0").set_state(LinkState::kDown);
    fabric.run();
    ASSERT_EQ(fabric.hosts[1]->arrivals.size(), 1U);
    EXPECT_EQ(fabric.hosts[1]->arrivals[0].number, 2U);
}

std::pair<std::uint64_t, std::uint64_t> digests_of_a_run(std::uint32_t extra_bytes) {
    RunningFabric fabric("star:8");
    fabric.bus.enable_packet_digest();
    for (std::uint32_t i = 0; i < 200; ++i) {
        fabric.send(i % 8, (i * 5 + 1) % 8, i, 64 + i + extra_bytes);
    }
    fabric.network.link("h3-s0").set_state(LinkState::kDown);
    fabric.run();
    return {fabric.bus.run_digest(), fabric.bus.packet_digest()};
}

TEST(Star, TheSameRunHasTheSameDigests) {
    EXPECT_EQ(digests_of_a_run(0), digests_of_a_run(0));
    EXPECT_NE(digests_of_a_run(0).second, digests_of_a_run(1).second);
    EXPECT_EQ(digests_of_a_run(0).first, digests_of_a_run(1).first);
}

// A number to be changed on purpose only: every compiler and optimisation level must agree on it.
TEST(Star, ARunHasTheDigestsThatAreWrittenHere) {
    const auto [run, packet] = digests_of_a_run(0);
    EXPECT_EQ(run, 0xCD54'6C16'FC27'B9B1U);
    EXPECT_EQ(packet, 0x7C95'D2EA'6A83'EC74U);
}

TEST(Star, FramesInFlightGoWithTheNetwork) {
    trace::MemorySink sink;
    {
        RunningFabric fabric("star:2");
        fabric.bus.attach(sink, {trace::Category::kPacket});
        fabric.send(0, 1, 1);
    }
    ASSERT_EQ(sink.count("frame_dropped"), 1U);
    EXPECT_EQ(sink.named("frame_dropped")[0]->text("reason"), "teardown");
}

}  // namespace
}  // namespace fabric
