// Link arithmetic to the picosecond, with ports made ACTIVE by hand: no subnet manager here.
#include "fabric/net/link.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "fabric/net/network.hpp"
#include "fabric/topology/generators.hpp"
#include "fabric/trace/memory_sink.hpp"

namespace fabric {
namespace {

class LinkTest : public testing::Test, public EndNodeListener {
  protected:
    LinkTest() : network_(loop_, bus_, make_pair()) {
        bus_.attach(trace_, trace::CategorySet::all());
        for (const std::size_t i : {0U, 1U}) {
            network_.host(i).set_listener(this);
        }
        activate();
    }

    void frame_arrived(Port& /*port*/, FramePtr frame) override {
        arrivals_.push_back(loop_.now());
        flows_.push_back(frame->flow);
    }
    void port_event(Port& port, PortEvent event) override {
        events_.emplace_back(port.node().id(), event);
    }

    void activate() {
        for (const PortTrigger trigger : {PortTrigger::kSetArmed, PortTrigger::kSetActive}) {
            sender().apply(trigger);
            receiver().apply(trigger);
        }
    }

    [[nodiscard]] Port& sender() const { return network_.host(0).port(PortNumber{1}); }
    [[nodiscard]] Port& receiver() const { return network_.host(1).port(PortNumber{1}); }

    void send(std::uint32_t wire_bytes, std::uint32_t flow = 0) {
        FramePtr frame = network_.frames().make();
        frame->wire_bytes = wire_bytes;
        frame->payload_bytes = wire_bytes > 30 ? wire_bytes - 30 : 0;
        frame->flow = flow;
        sender().send(std::move(frame));
    }

    EventLoop loop_;
    trace::Bus bus_;
    trace::MemorySink trace_;
    Network network_;
    std::vector<SimTime> arrivals_;
    std::vector<std::uint32_t> flows_;
    std::vector<std::pair<NodeId, PortEvent>> events_;
};

TEST_F(LinkTest, AFrameArrivesAfterTransmissionAndLatency) {
    send(1024);
    EXPECT_EQ(sender().transmitter_free_at(), kSimStart + 81'920_ps);
    loop_.run_until(SimTime::max());
    // 1024 bytes * 80 ps at 100 Gb/s, and 500 ns.
    EXPECT_EQ(arrivals_, std::vector{kSimStart + 581'920_ps});
}

TEST_F(LinkTest, FramesFollowEachOtherWithoutAGapAndInOrder) {
    send(1000, 1);
    send(26, 2);
    send(4126, 3);
    EXPECT_EQ(sender().transmitter_free_at(), kSimStart + 412'160_ps);
    loop_.run_until(SimTime::max());
    EXPECT_EQ(arrivals_, (std::vector{kSimStart + 580'000_ps, kSimStart + 582'080_ps,
                                      kSimStart + 912'160_ps}));
    EXPECT_EQ(flows_, (std::vector{1U, 2U, 3U}));
}

TEST_F(LinkTest, OnlyTheFirstFrameOfADirectionIsPending) {
    for (int i = 0; i < 100; ++i) {
        send(1024);
    }
    EXPECT_EQ(loop_.pending(), 1U);
    int visited = 0;
    network_.for_each_frame_in_flight([&visited](const Frame&) { ++visited; });
    EXPECT_EQ(visited, 100);
}

TEST_F(LinkTest, CountsFramesAndBytesWithoutTheVcrc) {
    send(1026);
    loop_.run_until(SimTime::max());
    EXPECT_EQ(sender().counters().xmit_packets, 1U);
    EXPECT_EQ(sender().counters().xmit_data_bytes, 1024U);
    EXPECT_EQ(receiver().counters().rcv_packets, 1U);
    EXPECT_EQ(receiver().counters().rcv_data_bytes, 1024U);
}

TEST_F(LinkTest, DropsWhatExceedsTheMtu) {
    send(4096 + 30);
    send(4096 + 31);
    loop_.run_until(SimTime::max());
    EXPECT_EQ(arrivals_.size(), 1U);
    EXPECT_EQ(sender().counters().discarded(DropReason::kExceedsMtu), 1U);
    ASSERT_EQ(trace_.named("frame_dropped").size(), 1U);
    EXPECT_EQ(trace_.named("frame_dropped")[0]->text("reason"), "exceeds_mtu");
}

TEST_F(LinkTest, GoingDownDestroysWhatIsInFlightAndLeavesTheClockAlone) {
    send(1024);
    send(1024);
    network_.link(0).set_state(LinkState::kDown);
    EXPECT_EQ(network_.frames().live(), 0U);
    EXPECT_TRUE(loop_.empty());
    EXPECT_EQ(sender().counters().discarded(DropReason::kLinkDown), 2U);
    EXPECT_EQ(sender().state(), PortState::kDown);
    EXPECT_EQ(sender().physical_state(), PhysicalState::kPolling);
    EXPECT_EQ(receiver().counters().link_downed, 1U);
    EXPECT_EQ(events_.back(), std::pair(NodeId{1}, PortEvent::kPortError));

    send(1024);
    EXPECT_EQ(sender().counters().discarded(DropReason::kPortNotActive), 1U);
}

TEST_F(LinkTest, ComingUpLeadsToInitAndNoFurther) {
    network_.link(0).set_state(LinkState::kDown);
    network_.link(0).set_state(LinkState::kUp);
    EXPECT_EQ(sender().state(), PortState::kInit);
    send(1024);
    EXPECT_EQ(sender().counters().discarded(DropReason::kPortNotActive), 1U);
    activate();
    send(1024);
    loop_.run_until(SimTime::max());
    EXPECT_EQ(arrivals_.size(), 1U);
}

TEST_F(LinkTest, AnActivePortDropsWhileItsPeerIsNot) {
    receiver().apply(PortTrigger::kRemoteInit);
    send(1024);
    EXPECT_EQ(sender().counters().discarded(DropReason::kPeerNotActive), 1U);
}

TEST_F(LinkTest, AFrameThatMeetsAPortInInitIsDroppedThere) {
    send(1024);
    receiver().apply(PortTrigger::kRemoteInit);
    loop_.run_until(SimTime::max());
    EXPECT_TRUE(arrivals_.empty());
    EXPECT_EQ(receiver().counters().discarded(DropReason::kArrivedInactive), 1U);
}

TEST_F(LinkTest, AHostWithoutAListenerDrops) {
    network_.host(1).set_listener(nullptr);
    send(1024);
    loop_.run_until(SimTime::max());
    EXPECT_EQ(receiver().counters().discarded(DropReason::kNoConsumer), 1U);
}

TEST_F(LinkTest, StateChangesAreInTheTrace) {
    trace_.clear();
    network_.link(0).set_state(LinkState::kDown);
    ASSERT_EQ(trace_.count("link_state"), 1U);
    EXPECT_EQ(trace_.named("link_state")[0]->text("link"), "h0-h1");
    ASSERT_EQ(trace_.count("port_state"), 2U);
    EXPECT_EQ(trace_.named("port_state")[0]->text("to"), "DOWN");
    EXPECT_EQ(trace_.count("port_event"), 2U);
}

}  // namespace
}  // namespace fabric
