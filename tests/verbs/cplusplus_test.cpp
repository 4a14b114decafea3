// <simverbs/simverbs.hpp>: what its objects begin and end.
#include "simverbs/simverbs.hpp"

#include "injection.hpp"

namespace verbs_test {
namespace {

using namespace std::chrono_literals;

class CPlusPlus : public Injection {};

TEST_F(CPlusPlus, AWorldThatEndsWithADeviceOpenSaysSoAndLeavesNothing) {
    testing::internal::CaptureStderr();
    {
        const simverbs::World world;
        ibv_device** const devices = ibv_get_device_list(nullptr);
        EXPECT_NE(ibv_open_device(devices[0]), nullptr);
        ibv_free_device_list(devices);
    }
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_NE(told.find("simverbs::World: simverbs_restart: "), std::string::npos) << told;
    EXPECT_NE(told.find("open"), std::string::npos) << told;
    EXPECT_NO_THROW(simverbs::World{});
}

TEST_F(CPlusPlus, FaultLastsAsLongAsItsObject) {
    connect();
    std::uint32_t id = 0;
    {
        simverbs::Fault lost = simverbs::drop().from("h0").qp(1).psn(2).attempt(1).inject();
        id = lost.id();
        write(1, 3);
        expect(*a, 1, IBV_WC_SUCCESS);
        EXPECT_EQ(lost.fired(), 1U);
        const simverbs::Fault moved = std::move(lost);
        EXPECT_EQ(moved.id(), id);
        EXPECT_EQ(moved.fired(), 1U);
    }
    std::uint64_t count = 0;
    EXPECT_EQ(simverbs_fault_fired(id, &count), ENOENT);
}

TEST_F(CPlusPlus, FaultThatIsLeftStays) {
    connect();
    const std::uint32_t id = simverbs::drop().from("h0").psn(1).attempt(1).inject().leave();
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 1U);
}

TEST_F(CPlusPlus, WhatIsRefusedIsThrownWithItsReason) {
    connect();
    try {
        const simverbs::Fault fault = simverbs::drop().from("h9").inject();
        FAIL() << "it was taken";
    } catch (const simverbs::Error& error) {
        EXPECT_EQ(error.code().value(), ENOENT);
        EXPECT_NE(std::strstr(error.what(), "match.from"), nullptr) << error.what();
    }
}

TEST_F(CPlusPlus, TimesAreDurations) {
    connect();
    const auto before = simverbs::now();
    const simverbs::Fault down = simverbs::link_down("h0-s0", 5ms).inject();
    simverbs::advance(2ms);
    EXPECT_EQ(simverbs::now() - before, 2ms);
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_GT(simverbs::now() - before, 5ms);
}

TEST_F(CPlusPlus, CallsFailAndOtherFaultsFollow) {
    connect();
    const simverbs::Fault refused = simverbs::call_fails("h0", "ibv_alloc_pd", ENOMEM).inject();
    const simverbs::Fault follows = simverbs::link_down("h0-s0").after(refused, 1ms).inject();
    EXPECT_EQ(ibv_alloc_pd(a->context), nullptr);
    EXPECT_EQ(follows.fired(), 0U);
    simverbs::advance(2ms);
    EXPECT_EQ(follows.fired(), 1U);
}

TEST_F(CPlusPlus, TraceHoldsWhatHappenedMeanwhile) {
    connect();
    const simverbs::Fault lost = simverbs::drop().from("h0").psn(1).attempt(1).inject();
    {
        const simverbs::Trace trace;
        write(1, 1);
        expect(*a, 1, IBV_WC_SUCCESS);
        ASSERT_EQ(trace.count("fault_fired"), 1U);
        for (const auto& record : trace.records()) {
            if (record.name == "fault_fired") {
                EXPECT_EQ(record.node, "h0");
                EXPECT_EQ(record.field("action"), "drop");
                EXPECT_EQ(record.field("fault"), std::to_string(lost.id()));
                EXPECT_FALSE(record.field("nonsense"));
            }
        }
    }
    write(2, 1);
    expect(*a, 2, IBV_WC_SUCCESS);
}

TEST_F(CPlusPlus, WorldBeginsAndEndsAfresh) {
    const auto digest_of = [this](std::uint64_t seed) {
        const simverbs::World world({.seed = seed});
        connect();
        const simverbs::Fault lossy =
            simverbs::drop().from("h0").requests().with_chance(1, 5).inject();
        write(1, 50);
        expect(*a, 1, IBV_WC_SUCCESS);
        const std::uint64_t digest = simverbs::run_digest();
        a.reset();
        b.reset();
        return digest;
    };
    const std::uint64_t first = digest_of(3);
    EXPECT_EQ(digest_of(3), first);
    EXPECT_NE(digest_of(4), first);
    EXPECT_THROW(simverbs::World({.topology = "no such thing"}), simverbs::Error);
    ASSERT_EQ(simverbs_restart(), 0);
    connect();
}

}  // namespace
}  // namespace verbs_test
