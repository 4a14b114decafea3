// Pictures of fabrics made by hand: what stands beside a link, and which one stands out.
#include <string>

#include <gtest/gtest.h>

#include "drawing.hpp"
#include "viz/topology_picture.hpp"

namespace viz_test {
namespace {

using Fabric = simverbs::viz::Run;  // testing::Test has a Run

constexpr std::uint64_t kRate = 100'000'000'000;  // 80 ps a byte

// Hosts h1 and h2 at switch s0, in that order of nodes.
Fabric star() {
    Fabric run;
    run.nodes = {{0, {"s0", true}}, {1, {"h1", false}}, {2, {"h2", false}}};
    for (const std::uint32_t host : {1U, 2U}) {
        run.links.push_back({.name = "l" + std::to_string(host),
                             .node = host,
                             .port = 1,
                             .peer = 0,
                             .peer_port = host,
                             .layer = "InfiniBand",
                             .bits_per_second = kRate,
                             .up = true});
    }
    return run;
}

// Returns the percentage that the picture gives the link of h1.
std::string share(std::uint64_t bytes, std::int64_t picoseconds) {
    Fabric run = star();
    run.ports[{1, 1}] = {.frames = 1, .bytes = bytes, .lost = 0};
    run.end = picoseconds;
    const std::string dot = simverbs::viz::topology_picture(run, {});
    const std::size_t end = dot.find(" % busy");
    const std::size_t begin = dot.rfind('>', end);
    return end == std::string::npos ? "" : dot.substr(begin + 1, end - begin - 1);
}

TEST(Topology, SaysHowBusyALinkIsOfTheExactTime) {
    EXPECT_EQ(share(12'500, 1'999'999), "50.0") << "not of whole microseconds";
    EXPECT_EQ(share(12'500, 4'000'000), "25.0");
    EXPECT_EQ(share(10, 999'999), "0.1") << "rounded, not cut: 0.08";
    EXPECT_EQ(share(1, 999'999), "") << "0.008";
    EXPECT_EQ(share(12'500, 1'000'000), "100.0");
}

TEST(Topology, TheLinkThatIsBusiestInOneDirectionStandsOut) {
    Fabric run = star();
    run.end = 100'000'000;
    run.ports[{1, 1}] = {.frames = 1, .bytes = 60'000, .lost = 0};
    run.ports[{0, 1}] = {.frames = 1, .bytes = 60'000, .lost = 0};
    run.ports[{2, 1}] = {.frames = 1, .bytes = 100'000, .lost = 0};
    const std::string dot = simverbs::viz::topology_picture(run, {});
    EXPECT_NE(dot.find("n0 -- n1 [penwidth=4, color=\"#1a1a1a\""), std::string::npos) << dot;
    EXPECT_NE(dot.find("n0 -- n2 [penwidth=6, color=\"#e69f00\""), std::string::npos) << dot;
}

// Returns how many of the nodes of a fabric with `hosts` hosts at one switch are drawn.
std::size_t drawn_of(std::uint32_t hosts, simverbs::viz::DrawnNodes drawn) {
    Fabric run;
    run.nodes[0] = {.label = "s0", .is_switch = true};
    for (std::uint32_t host = 1; host <= hosts; ++host) {
        run.nodes[host] = {.label = "h" + std::to_string(host), .is_switch = false};
        run.links.push_back({.name = "l", .node = 0, .port = host, .peer = host, .peer_port = 1});
    }
    return simverbs::viz::lay_out(run, {}, drawn).places.size();
}

TEST(Topology, DrawsEachNodeOfALargeFabricIfAskedTo) {
    EXPECT_EQ(drawn_of(40, simverbs::viz::DrawnNodes::kThatFit), 41U);
    EXPECT_EQ(drawn_of(300, simverbs::viz::DrawnNodes::kThatFit), 41U);
    EXPECT_EQ(drawn_of(300, simverbs::viz::DrawnNodes::kAll), 301U);
}

}  // namespace
}  // namespace viz_test
