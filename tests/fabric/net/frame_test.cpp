#include "fabric/net/frame.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace fabric {
namespace {

struct CountingCargo final : FrameCargo {
    void release() override { ++released; }
    void retain() override { ++retained; }
    int retained = 0;
    int released = 0;
};

struct Headers {
    std::uint64_t opcode;
    std::uint64_t psn;
};

TEST(Frame, KeepsWhatEveryHopReadsInOneCacheLine) {
    EXPECT_LE(offsetof(Frame, grh), 64U);
}

TEST(Frame, LendsItsSlotToTheTransport) {
    FramePool pool;
    const FramePtr frame = pool.make();
    frame->transport_as<Headers>() = {4, 17};
    EXPECT_EQ(frame->transport_as<Headers>().psn, 17U);
}

TEST(FramePool, ReleasesCargoOnceWhenTheFrameGoes) {
    FramePool pool;
    CountingCargo cargo;
    {
        const FramePtr frame = pool.make();
        frame->cargo = &cargo;
        EXPECT_EQ(cargo.released, 0);
    }
    EXPECT_EQ(cargo.released, 1);
    { const FramePtr again = pool.make(); }
    EXPECT_EQ(cargo.released, 1);
}

TEST(FramePool, HandsOutCleanFramesAgain) {
    FramePool pool;
    Frame* address = nullptr;
    {
        const FramePtr frame = pool.make();
        address = frame.get();
        frame->dlid = Lid{9};
        frame->pkey = 1;
        frame->has_grh = true;
    }
    const FramePtr again = pool.make();
    EXPECT_EQ(again.get(), address);
    EXPECT_EQ(again->dlid, kNoLid);
    EXPECT_EQ(again->pkey, 0xFFFF);
    EXPECT_FALSE(again->has_grh);
}

TEST(FramePool, GrowsAsFarAsItMust) {
    FramePool pool;
    std::vector<FramePtr> held;
    held.reserve(1000);
    for (int i = 0; i < 1000; ++i) {
        held.push_back(pool.make());
    }
    EXPECT_EQ(pool.live(), 1000U);
    held.clear();
    EXPECT_EQ(pool.live(), 0U);
}

using FramePoolDeathTest = testing::Test;

TEST(FramePoolDeathTest, NoticesAFrameThatOutlivesIt) {
    EXPECT_DEATH(
        {
            FramePool pool;
            [[maybe_unused]] Frame* const lost = pool.make().release();
        },
        "1 frames outlive their pool");
}

}  // namespace
}  // namespace fabric
