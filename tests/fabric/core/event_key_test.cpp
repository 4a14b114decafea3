#include <gtest/gtest.h>

#include "fabric/core/event.hpp"

namespace fabric {
namespace {

constexpr EventKey key(EventClass event_class, std::uint32_t node, std::uint16_t port,
                       std::uint32_t sequence) {
    return {event_class, NodeId{node}, PortNumber{port}, sequence};
}

TEST(EventKey, GivesBackWhatWentIn) {
    const EventKey packed = key(EventClass::kTimer, EventKey::kMaxNode, 4095, 0x3FFF'FFFF);
    EXPECT_EQ(packed.event_class(), EventClass::kTimer);
    EXPECT_EQ(packed.node(), NodeId{EventKey::kMaxNode});
    EXPECT_EQ(packed.port(), PortNumber{4095});
    EXPECT_EQ(packed.sequence(), 0x3FFF'FFFFU);
}

TEST(EventKey, OrdersByClassThenNodeThenPortThenSequence) {
    using enum EventClass;
    EXPECT_LT(key(kLinkState, 9, 9, 9), key(kFrameArrival, 0, 0, 0));
    EXPECT_LT(key(kFrameArrival, 9, 9, 9), key(kTimer, 0, 0, 0));
    EXPECT_LT(key(kTimer, 9, 9, 9), key(kApplication, 0, 0, 0));
    EXPECT_LT(key(kTimer, 1, 9, 9), key(kTimer, 2, 0, 0));
    EXPECT_LT(key(kTimer, 1, 1, 9), key(kTimer, 1, 2, 0));
    EXPECT_LT(key(kTimer, 1, 1, 1), key(kTimer, 1, 1, 2));
}

}  // namespace
}  // namespace fabric
