#include "fabric/faults/frame_fault.hpp"

#include <bit>
#include <tuple>

#include <gtest/gtest.h>

#include "fabric/faults/frame_actions.hpp"

#include "tests/fabric/running_fabric.hpp"

namespace fabric {
namespace {

using test::RunningFabric;

class NoPayload final : public PayloadKeeper {
  public:
    void keep_payload(Frame& /*frame*/) override { ++kept; }
    int kept = 0;
};

// Between two hosts; what the second one gets.
class FrameFaults : public testing::Test {
  protected:
    FrameFault fault(std::unique_ptr<FrameAction> action, const OccasionRules& rules = {}) {
        return {fabric.bus, FaultId{7},        std::make_unique<EveryFrame>(),
                rules,      std::move(action), {&from_first_host()}};
    }
    LinkDirection& from_first_host() {
        return fabric.network.link(0).direction_from(fabric.network.host(0).id());
    }
    void send(std::uint32_t count) {
        for (std::uint32_t i = 1; i <= count; ++i) {
            fabric.send(0, 1, i);
        }
    }
    std::vector<std::uint32_t> numbers() {
        std::vector<std::uint32_t> all;
        for (const test::Arrival& arrival : fabric.hosts[1]->arrivals) {
            all.push_back(arrival.number);
        }
        return all;
    }

    RunningFabric fabric{"pair"};
    FaultClock clock{fabric.loop};
    NoPayload keeper;
};

using Numbers = std::vector<std::uint32_t>;

TEST_F(FrameFaults, DropTakesThatFrameAndNoOther) {
    const FrameFault dropping = fault(std::make_unique<DropFrame>(), {.nth = 3});
    send(5);
    fabric.run();
    EXPECT_EQ(numbers(), (Numbers{1, 2, 4, 5}));
    // It still took its time on the wire: the fourth ends at 4 * 81.92 ns.
    EXPECT_EQ(fabric.hosts[1]->arrivals[2].time, kSimStart + 827'680_ps);
    EXPECT_EQ(fabric.port_of(0).counters().discarded(DropReason::kFault), 1U);

    ASSERT_EQ(fabric.trace.count("fault_fired"), 1U);
    const trace::TraceRecord& record = *fabric.trace.named("fault_fired")[0];
    EXPECT_EQ(record.number("fault"), 7U);
    EXPECT_EQ(record.number("nth"), 3U);
    EXPECT_EQ(record.category, trace::Category::kFault);
}

TEST_F(FrameFaults, SymbolErrorsAreCountedWhereTheyAreSeen) {
    const FrameFault breaking = fault(std::make_unique<SymbolError>(), {.nth = 2, .count = 2});
    send(5);
    fabric.run();
    EXPECT_EQ(numbers(), (Numbers{1, 4, 5}));
    const PortCounters& seen = fabric.port_of(1).counters();
    EXPECT_EQ(seen.symbol_errors, 2U);
    EXPECT_EQ(seen.rcv_errors, 2U);
    EXPECT_EQ(fabric.port_of(0).counters().symbol_errors, 0U);
}

TEST_F(FrameFaults, LeaveTheOtherDirectionAlone) {
    FrameFault dropping = fault(std::make_unique<DropFrame>());
    fabric.send(1, 0, 1);
    fabric.run();
    EXPECT_EQ(fabric.hosts[0]->arrivals.size(), 1U);
    EXPECT_EQ(dropping.occasion().seen(), 0U);
}

TEST_F(FrameFaults, LastAsLongAsTheyLive) {
    {
        FrameFault dropping = fault(std::make_unique<DropFrame>(), {.count = kEveryTime});
        send(2);
        EXPECT_EQ(dropping.occasion().fired(), 2U);
    }
    fabric.send(0, 1, 3);
    fabric.run();
    EXPECT_EQ(numbers(), Numbers{3});
}

TEST_F(FrameFaults, DuplicateComesRightBehind) {
    const FrameFault doubling =
        fault(std::make_unique<DuplicateFrame>(clock, keeper, 2, SimDuration{}), {.nth = 2});
    send(3);
    fabric.run();
    EXPECT_EQ(numbers(), (Numbers{1, 2, 2, 2, 3}));
    EXPECT_EQ(keeper.kept, 2);
}

TEST_F(FrameFaults, DelayLetsOthersPassAndTakesNoTimeOfTheWire) {
    const FrameFault delaying =
        fault(std::make_unique<DelayFrame>(clock, keeper, 10'000'000_ps), {.nth = 1});
    send(3);
    fabric.run();
    EXPECT_EQ(numbers(), (Numbers{2, 3, 1}));
    // 81.92 ns on the wire, 500 ns under way.
    EXPECT_EQ(fabric.hosts[1]->arrivals[0].time, kSimStart + 581'920_ps);
    EXPECT_EQ(fabric.hosts[1]->arrivals[2].time, kSimStart + 10'581'920_ps);
    EXPECT_EQ(fabric.port_of(0).counters().xmit_packets, 3U);
    EXPECT_EQ(fabric.port_of(0).counters().discarded(DropReason::kFault), 0U);
}

TEST_F(FrameFaults, ReorderSwapsTwo) {
    const FrameFault swapping =
        fault(std::make_unique<ReorderFrame>(clock, keeper, SimDuration{}), {.nth = 2});
    send(4);
    fabric.run();
    EXPECT_EQ(numbers(), (Numbers{1, 3, 2, 4}));
}

TEST_F(FrameFaults, ReorderWithoutASuccessorGoesOnInTheEnd) {
    const FrameFault swapping =
        fault(std::make_unique<ReorderFrame>(clock, keeper, 5'000'000_ps), {.nth = 2});
    send(2);
    fabric.run();
    EXPECT_EQ(numbers(), (Numbers{1, 2}));
    EXPECT_GT(fabric.hosts[1]->arrivals[1].time, kSimStart + 5'000'000_ps);
}

TEST_F(FrameFaults, HoldKeepsTheOrder) {
    FrameFault holding =
        fault(std::make_unique<HoldFrame>(clock, keeper, SimDuration{}), {.nth = 1, .count = 2});
    send(3);
    fabric.run();
    EXPECT_EQ(numbers(), Numbers{3});
    holding.action().release();
    fabric.run();
    EXPECT_EQ(numbers(), (Numbers{3, 1, 2}));
}

TEST_F(FrameFaults, WhatIsHeldIsLostWithTheFault) {
    {
        const FrameFault holding =
            fault(std::make_unique<HoldFrame>(clock, keeper, 1'000_ps), {.nth = 1});
        send(1);
    }
    fabric.run();
    EXPECT_EQ(numbers(), Numbers{});
    EXPECT_EQ(fabric.network.frames().live(), 0U);
}

TEST_F(FrameFaults, KeepToATimeWindow) {
    FrameFault dropping =
        fault(std::make_unique<DropFrame>(),
              {.from = kSimStart + 100_ps, .until = kSimStart + 200_ps, .count = kEveryTime});
    send(1);
    clock.after(100_ps, [this] { send(1); });
    clock.after(199_ps, [this] { send(1); });
    clock.after(200_ps, [this] { send(1); });
    fabric.run();
    EXPECT_EQ(dropping.occasion().fired(), 2U);
}

TEST(Occasion, ByChanceIsAHashOfSeedFaultPlaceAndFlow) {
    const auto draws = [](std::uint64_t seed, std::uint32_t fault, std::uint64_t flow) {
        Occasion occasion(FaultId{fault}, {.count = kEveryTime, .chance = {1, 4}, .seed = seed});
        std::uint64_t bits = 0;
        for (int i = 0; i < 64; ++i) {
            bits = bits << 1U | (occasion.arrives(kSimStart, 1, flow) ? 1U : 0U);
        }
        return bits;
    };
    EXPECT_EQ(draws(1, 1, 1), draws(1, 1, 1));
    EXPECT_NE(draws(1, 1, 1), draws(2, 1, 1));
    EXPECT_NE(draws(1, 1, 1), draws(1, 2, 1));
    EXPECT_NE(draws(1, 1, 1), draws(1, 1, 2));
    EXPECT_GT(std::popcount(draws(1, 1, 1)), 6);
    EXPECT_LT(std::popcount(draws(1, 1, 1)), 28);
}

// Packets of another flow in between change nothing.
TEST(Occasion, DrawsOfAFlowDoNotDependOnOthers) {
    Occasion alone(FaultId{1}, {.count = kEveryTime, .chance = {1, 2}, .seed = 1});
    Occasion among(FaultId{1}, {.count = kEveryTime, .chance = {1, 2}, .seed = 1});
    for (int i = 0; i < 64; ++i) {
        std::ignore = among.arrives(kSimStart, 1, 8);
        EXPECT_EQ(alone.arrives(kSimStart, 1, 9), among.arrives(kSimStart, 1, 9));
    }
}

TEST(Occasion, SleepsUntilItIsWoken) {
    Occasion occasion(FaultId{1}, {});
    occasion.sleep();
    EXPECT_FALSE(occasion.arrives(kSimStart, 0, 0));
    EXPECT_EQ(occasion.seen(), 0U);
    occasion.wake();
    EXPECT_TRUE(occasion.arrives(kSimStart, 0, 0));
    EXPECT_TRUE(occasion.is_over());
    EXPECT_FALSE(occasion.arrives(kSimStart, 0, 0));
}

TEST(LinkDirection, PausedSendsLaterAndLosesNothing) {
    RunningFabric fabric("pair");
    LinkDirection& direction = fabric.network.link(0).direction_from(fabric.network.host(0).id());
    fabric.send(0, 1, 1);
    fabric.send(0, 1, 2);
    direction.pause_until(kSimStart + 9'000'000_ps);
    fabric.send(0, 1, 3);
    fabric.run();
    ASSERT_EQ(fabric.hosts[1]->arrivals.size(), 3U);
    EXPECT_GT(fabric.hosts[1]->arrivals[1].time, kSimStart + 9'000'000_ps);
    EXPECT_EQ(fabric.hosts[1]->arrivals[2].number, 3U);
}

}  // namespace
}  // namespace fabric
