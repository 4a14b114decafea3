// Latencies to the picosecond against a calculation written out here, with no code of the fabric's
// in it: byte times by hand for each speed and width, and what a path adds up to.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::RunningFabric;

// Data rate of one lane in bit/s, from the signalling rates and codes of IBA volume 2:
// 2.5 G * 8/10 and so on; 14.0625 G * 64/66 = 13.636363636...; 53.125 G * 256/272 = 50 G.
struct LaneRate {
    LinkSpeed speed;
    std::int64_t numerator;  // bit/s of a lane = numerator / denominator
    std::int64_t denominator;
};
constexpr std::array kLaneRates = {
    LaneRate{LinkSpeed::kSdr, 2'000'000'000, 1},    LaneRate{LinkSpeed::kDdr, 4'000'000'000, 1},
    LaneRate{LinkSpeed::kQdr, 8'000'000'000, 1},    LaneRate{LinkSpeed::kFdr10, 10'000'000'000, 1},
    LaneRate{LinkSpeed::kFdr, 150'000'000'000, 11}, LaneRate{LinkSpeed::kEdr, 25'000'000'000, 1},
    LaneRate{LinkSpeed::kHdr, 50'000'000'000, 1},   LaneRate{LinkSpeed::kNdr, 100'000'000'000, 1},
    LaneRate{LinkSpeed::kXdr, 200'000'000'000, 1},
};
struct Lanes {
    LinkWidth width;
    std::int64_t count;
};
constexpr std::array kWidths = {Lanes{LinkWidth::k1x, 1}, Lanes{LinkWidth::k2x, 2},
                                Lanes{LinkWidth::k4x, 4}, Lanes{LinkWidth::k8x, 8},
                                Lanes{LinkWidth::k12x, 12}};

// LRH 8, BTH 12, ICRC 4, VCRC 2 besides the payload.
constexpr std::uint32_t kSmall = 8 + 26;
constexpr std::uint32_t kLarge = 4096 + 26;
constexpr std::int64_t kLatency = 500'000;
constexpr std::int64_t kSwitch = 100'000;
constexpr std::int64_t kHead = 64;  // bytes that a switch has to have

// The time of `bytes`, rounded up to a picosecond; FDR is rounded down to whole bits a second.
std::int64_t time_of(std::int64_t bytes, const LaneRate& rate, std::int64_t lanes) {
    const std::int64_t bits_per_second = rate.numerator * lanes / rate.denominator;
    const std::int64_t whole = bytes * 8 * 1'000'000 / bits_per_second;
    const std::int64_t rest = bytes * 8 * 1'000'000 % bits_per_second;
    return whole * 1'000'000 + (rest * 1'000'000 + bits_per_second - 1) / bits_per_second;
}

Topology at(Topology topology, LinkSpeed speed, LinkWidth width, bool cuts_through) {
    for (LinkSpec& link : topology.links) {
        link.speed = speed;
        link.width = width;
    }
    for (NodeSpec& node : topology.nodes) {
        node.forwarding = cuts_through ? Forwarding::kCutThrough : Forwarding::kStoreAndForward;
    }
    return topology;
}

// Three levels: h0 - leaf l0 - spine m0 - core c0 - spine m1 - leaf l1 - h1.
Topology make_tree() {
    Topology topology;
    topology.nodes = {{"h0", NodeKind::kHca, 1},    {"h1", NodeKind::kHca, 1},
                      {"l0", NodeKind::kSwitch, 2}, {"l1", NodeKind::kSwitch, 2},
                      {"m0", NodeKind::kSwitch, 2}, {"m1", NodeKind::kSwitch, 2},
                      {"c0", NodeKind::kSwitch, 2}};
    const auto join = [&topology](std::string a, std::uint16_t port_a, std::string b,
                                  std::uint16_t port_b) {
        LinkSpec link;
        link.a = {std::move(a), PortNumber{port_a}};
        link.b = {std::move(b), PortNumber{port_b}};
        topology.links.push_back(link);
    };
    join("h0", 1, "l0", 1);
    join("l0", 2, "m0", 1);
    join("m0", 2, "c0", 1);
    join("c0", 2, "m1", 1);
    join("m1", 2, "l1", 1);
    join("l1", 2, "h1", 1);
    return topology;
}

// h1 answers each frame with one of the same size.
class Echo final : public EndNodeListener {
  public:
    explicit Echo(RunningFabric& fabric) : fabric_(fabric) {
        fabric.network.host(1).set_listener(this);
    }
    void frame_arrived(Port& /*port*/, FramePtr frame) override {
        arrival = fabric_.loop.now();
        fabric_.send(1, 0, 0, frame->wire_bytes);
    }
    void port_event(Port& /*port*/, PortEvent /*event*/) override {}

    SimTime arrival{};

  private:
    RunningFabric& fabric_;
};

std::array<std::int64_t, 2> one_way_and_round_trip(Topology topology, std::uint32_t bytes) {
    RunningFabric fabric(std::move(topology));
    Echo echo(fabric);
    fabric.send(0, 1, 0, bytes);
    fabric.run();
    EXPECT_EQ(fabric.hosts[0]->arrivals.size(), 1U);
    return {to_picoseconds(echo.arrival), to_picoseconds(fabric.loop.now())};
}

void expect_everywhere(const Topology& topology, std::int64_t switches) {
    for (const LaneRate& rate : kLaneRates) {
        for (const Lanes& lanes : kWidths) {
            for (const std::uint32_t bytes : {kSmall, kLarge}) {
                const std::int64_t whole = time_of(bytes, rate, lanes.count);
                const std::int64_t head =
                    time_of(std::min<std::int64_t>(bytes, kHead), rate, lanes.count);
                for (const bool cuts_through : {true, false}) {
                    const std::int64_t hop = (cuts_through ? head : whole) + kLatency + kSwitch;
                    const std::int64_t one_way = switches * hop + whole + kLatency;
                    EXPECT_EQ(one_way_and_round_trip(
                                  at(topology, rate.speed, lanes.width, cuts_through), bytes),
                              (std::array{one_way, 2 * one_way}))
                        << to_string(lanes.width) << ' ' << to_string(rate.speed) << ", " << bytes
                        << " bytes, cut through: " << cuts_through;
                }
            }
        }
    }
}

TEST(GoldenLatency, OfAPair) {
    expect_everywhere(make_pair(), 0);
}

TEST(GoldenLatency, OfAStar) {
    expect_everywhere(make_star(2), 1);
}

TEST(GoldenLatency, OfAThreeLevelTree) {
    expect_everywhere(make_tree(), 5);
}

// The numbers at 4x EDR, 80 ps a byte, once more as numbers.
TEST(GoldenLatency, AtOneHundredGigabits) {
    EXPECT_EQ(one_way_and_round_trip(make_pair(), kSmall),
              (std::array<std::int64_t, 2>{502'720, 1'005'440}));
    EXPECT_EQ(one_way_and_round_trip(make_pair(), kLarge),
              (std::array<std::int64_t, 2>{829'760, 1'659'520}));
    EXPECT_EQ(one_way_and_round_trip(make_star(2), kLarge),
              (std::array<std::int64_t, 2>{1'434'880, 2'869'760}));
    // 5 * (5.12 + 500 + 100) + 329.76 + 500 ns.
    EXPECT_EQ(one_way_and_round_trip(make_tree(), kLarge),
              (std::array<std::int64_t, 2>{3'855'360, 7'710'720}));
}

// From 4x SDR (1 ns a byte) into 4x EDR the switch has to wait for the last bit; the other way it
// need not.
TEST(GoldenLatency, OfAStarWithTwoSpeeds) {
    Topology topology = make_star(2);
    topology.links[0].speed = LinkSpeed::kSdr;
    EXPECT_EQ(one_way_and_round_trip(topology, kLarge),
              (std::array<std::int64_t, 2>{(4'122'000 + 500'000) + 100'000 + 329'760 + 500'000,
                                           (4'122'000 + 500'000) + 100'000 + 329'760 + 500'000 +
                                               5'120 + 500'000 + 100'000 + 4'122'000 + 500'000}));
}

}  // namespace
}  // namespace fabric
