// Switches in a ring, routed all one way round: frames that wait for each other for ever.
#include "fabric/net/credit_loop.hpp"

#include <string>

#include <gtest/gtest.h>

#include "fabric/net/link_direction.hpp"

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::RunningFabric;

// Port 1 of each switch has a host, port 2 leads to port 3 of the next.
Topology ring_of(std::uint32_t switches, std::uint32_t buffer_bytes) {
    Topology topology;
    for (std::uint32_t i = 0; i < switches; ++i) {
        const std::string number = std::to_string(i);
        topology.nodes.push_back({"h" + number, NodeKind::kHca, 1});
        topology.nodes.push_back({"s" + number, NodeKind::kSwitch, 3});
        LinkSpec host;
        host.a = {"h" + number, PortNumber{1}};
        host.b = {"s" + number, PortNumber{1}};
        host.buffer_bytes = buffer_bytes;
        topology.links.push_back(host);
        LinkSpec next = host;
        next.a = {"s" + number, PortNumber{2}};
        next.b = {"s" + std::to_string((i + 1) % switches), PortNumber{3}};
        topology.links.push_back(next);
    }
    return topology;
}

void route_one_way_round(RunningFabric& fabric) {
    for (std::size_t i = 0; i < fabric.network.switch_count(); ++i) {
        std::vector<std::uint16_t> table(100, Switch::kNoRoute);
        for (std::size_t host = 0; host < fabric.network.host_count(); ++host) {
            table[fabric.port_of(host).attributes().lid.value()] = host == i ? 1 : 2;
        }
        fabric.network.switch_at(i).set_forwarding_table(std::move(table));
    }
}

// Every host sends to the one two switches on.
void fill(RunningFabric& fabric, std::uint32_t frames) {
    const std::size_t hosts = fabric.network.host_count();
    for (std::uint32_t i = 0; i < frames; ++i) {
        for (std::size_t host = 0; host < hosts; ++host) {
            fabric.send(host, (host + 2) % hosts, i, 4096 + test::kHeaderBytes);
        }
    }
    fabric.run();
}

std::size_t arrivals(const RunningFabric& fabric) {
    std::size_t count = 0;
    for (const auto& host : fabric.hosts) {
        count += host->arrivals.size();
    }
    return count;
}

TEST(CreditLoop, OnARingIsFoundAndNamed) {
    RunningFabric fabric(ring_of(3, 8448));
    route_one_way_round(fabric);
    EXPECT_TRUE(find_credit_loop(fabric.network).empty());
    fill(fabric, 20);
    EXPECT_TRUE(fabric.loop.empty());
    EXPECT_LT(arrivals(fabric), 60U);
    EXPECT_EQ(describe(find_credit_loop(fabric.network)),
              "s0 port 2 > s1 port 2 > s2 port 2 > s0 port 2");

    EXPECT_TRUE(fabric.network.report_credit_loop().starts_with("s0 port 2"));
    ASSERT_EQ(fabric.trace.count("credit_loop"), 1U);
    EXPECT_EQ(fabric.trace.named("credit_loop")[0]->text("ports"),
              "s0 port 2 > s1 port 2 > s2 port 2 > s0 port 2");
}

TEST(CreditLoop, IsNoneWhereRoutesDoNotClose) {
    RunningFabric fabric(ring_of(3, 8448));  // min-hop: one switch on, never two
    fill(fabric, 20);
    EXPECT_EQ(arrivals(fabric), 60U);
    EXPECT_TRUE(find_credit_loop(fabric.network).empty());
    EXPECT_EQ(fabric.network.report_credit_loop(), "");
    EXPECT_EQ(fabric.trace.count("credit_loop"), 0U);
}

TEST(CreditLoop, IsBrokenByTheLifetimeLimit) {
    RunningFabric fabric(ring_of(3, 8448));
    route_one_way_round(fabric);
    for (std::size_t i = 0; i < 3; ++i) {
        fabric.network.switch_at(i).port(PortNumber{2}).mutable_attributes().head_of_queue_life =
            4;  // 65.536 us
    }
    fill(fabric, 20);
    std::uint64_t lost = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        const PortCounters& counters = fabric.network.switch_at(i).port(PortNumber{2}).counters();
        lost += counters.discarded(DropReason::kHeadOfQueueLifetime);
        EXPECT_EQ(counters.xmit_discards(), counters.discarded(DropReason::kHeadOfQueueLifetime));
    }
    EXPECT_GT(lost, 0U);
    EXPECT_EQ(arrivals(fabric) + lost, 60U);
    EXPECT_TRUE(find_credit_loop(fabric.network).empty());
    EXPECT_GT(fabric.loop.now(), kSimStart + 65'536_ns);
}

TEST(CreditLoop, GoesWithTheNetwork) {
    trace::MemorySink sink;
    {
        RunningFabric fabric(ring_of(3, 8448));
        fabric.bus.attach(sink, {trace::Category::kPacket});
        route_one_way_round(fabric);
        fill(fabric, 20);
    }
    EXPECT_GT(sink.count("frame_dropped"), 0U);
}

}  // namespace
}  // namespace fabric
