// The ring that receives are taken from, as a program's memory may hold it.
#include "simverbs/hca/receive_source.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace simverbs::test {
namespace {

TEST(ReceiveRing, AProducerBeyondItsSlotsIsNotBelieved) {
    constexpr WorkQueueShape kShape = receive_queue_shape(4, 1);
    QueuePairRings head{};
    const std::vector<std::byte> slots(kShape.bytes());
    ReceiveRing ring{&head, slots.data(), kShape};
    RecvWqe wqe;
    std::array<Segment, 1> segments{};
    std::uint32_t index = 0;

    head.receive_producer.value = 4;
    EXPECT_EQ(ring.waiting(), 4U);
    EXPECT_TRUE(ring.take(wqe, segments, index));
    EXPECT_EQ(ring.waiting(), 3U);

    head.receive_producer.value = 6;
    EXPECT_EQ(ring.waiting(), 0U) << "five in four slots";
    EXPECT_FALSE(ring.take(wqe, segments, index));
    head.receive_producer.value = 0;
    EXPECT_EQ(ring.waiting(), 0U) << "fewer than were taken";
    EXPECT_FALSE(ring.take(wqe, segments, index));
}

}  // namespace
}  // namespace simverbs::test
