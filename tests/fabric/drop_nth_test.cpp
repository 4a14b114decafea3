#include "fabric/faults/drop_nth.hpp"

#include <gtest/gtest.h>

#include "fabric/faults/rewrite_nth.hpp"

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::RunningFabric;

LinkDirection& from_first_host(RunningFabric& fabric) {
    return fabric.network.link(0).direction_from(fabric.network.host(0).id());
}

TEST(DropNth, TakesThatFrameAndNoOther) {
    RunningFabric fabric("pair");
    const DropNth fault(from_first_host(fabric), fabric.bus, 3, FaultId{7});
    for (std::uint32_t i = 1; i <= 5; ++i) {
        fabric.send(0, 1, i);
    }
    fabric.run();
    ASSERT_EQ(fabric.hosts[1]->arrivals.size(), 4U);
    EXPECT_EQ(fabric.hosts[1]->arrivals[2].number, 4U);
    // It still took its time on the wire: the fourth ends at 4 * 81.92 ns.
    EXPECT_EQ(fabric.hosts[1]->arrivals[2].time, kSimStart + 827'680_ps);
    EXPECT_EQ(fabric.port_of(0).counters().discarded(DropReason::kFault), 1U);

    ASSERT_EQ(fabric.trace.count("fault_fired"), 1U);
    const trace::TraceRecord& record = *fabric.trace.named("fault_fired")[0];
    EXPECT_EQ(record.number("fault"), 7U);
    EXPECT_EQ(record.number("nth"), 3U);
    EXPECT_EQ(record.category, trace::Category::kFault);
}

TEST(DropNth, LeavesTheOtherDirectionAlone) {
    RunningFabric fabric("pair");
    const DropNth fault(from_first_host(fabric), fabric.bus, 1);
    fabric.send(1, 0, 1);
    fabric.run();
    EXPECT_EQ(fabric.hosts[0]->arrivals.size(), 1U);
    EXPECT_EQ(fault.seen(), 0U);
}

TEST(RewriteNth, ChangesThatFrameAndLetsItGoOn) {
    RunningFabric fabric("pair");
    const RewriteNth fault(
        from_first_host(fabric), fabric.bus, 2,
        [](Frame& frame) { frame.transport_as<std::uint32_t>() += 90; }, FaultId{4});
    for (std::uint32_t i = 1; i <= 3; ++i) {
        fabric.send(0, 1, i);
    }
    fabric.run();
    ASSERT_EQ(fabric.hosts[1]->arrivals.size(), 3U);
    EXPECT_EQ(fabric.hosts[1]->arrivals[0].number, 1U);
    EXPECT_EQ(fabric.hosts[1]->arrivals[1].number, 92U);
    EXPECT_EQ(fabric.hosts[1]->arrivals[2].number, 3U);
    ASSERT_EQ(fabric.trace.count("fault_fired"), 1U);
    EXPECT_EQ(fabric.trace.named("fault_fired")[0]->number("fault"), 4U);
}

TEST(DropAll, LastsAsLongAsItLives) {
    RunningFabric fabric("pair");
    {
        const DropAll fault(from_first_host(fabric), fabric.bus);
        fabric.send(0, 1, 1);
        fabric.send(0, 1, 2);
        EXPECT_EQ(fault.dropped(), 2U);
    }
    fabric.send(0, 1, 3);
    fabric.run();
    ASSERT_EQ(fabric.hosts[1]->arrivals.size(), 1U);
    EXPECT_EQ(fabric.hosts[1]->arrivals[0].number, 3U);
    EXPECT_EQ(fabric.trace.count("fault_fired"), 2U);
}

}  // namespace
}  // namespace fabric
