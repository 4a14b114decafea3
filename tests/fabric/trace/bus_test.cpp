#include "fabric/trace/bus.hpp"

#include <gtest/gtest.h>

#include "fabric/trace/memory_sink.hpp"

#include "tests/fabric/trace/sample_events.hpp"

namespace fabric::trace {
namespace {

using test::Called;
using test::Colour;
using test::PacketSeen;

constexpr SimTime kNoon = kSimStart + 12_us;

std::uint64_t digest_after(SimTime time, const Called& event) {
    Bus bus;
    bus.emit(time, event);
    return bus.run_digest();
}

TEST(Bus, DigestKnowsTimeNodeAndEveryField) {
    const Called base{.node = NodeId{1}};
    const std::uint64_t digest = digest_after(kNoon, base);
    EXPECT_EQ(digest, digest_after(kNoon, base));
    EXPECT_NE(digest, digest_after(kNoon + 1_ps, base));
    EXPECT_NE(digest, digest_after(kNoon, {.node = NodeId{2}}));
    EXPECT_NE(digest, digest_after(kNoon, {.node = NodeId{1}, .returned = -1}));
    EXPECT_NE(digest, digest_after(kNoon, {.node = NodeId{1}, .colour = Colour::kBlue}));
    EXPECT_NE(digest, digest_after(kNoon, {.node = NodeId{1}, .verb = "post"}));
    EXPECT_NE(digest, digest_after(kNoon, {.node = NodeId{1}, .blocking = true}));
}

TEST(Bus, LookingAtARunDoesNotChangeItsDigests) {
    MemorySink sink;
    Bus watched;
    watched.attach(sink, CategorySet::all());
    Bus alone;
    for (Bus* const bus : {&watched, &alone}) {
        bus->emit(kNoon, Called{.node = NodeId{1}});
        bus->emit(kNoon, PacketSeen{.node = NodeId{1}, .bytes = 9});
    }
    EXPECT_EQ(watched.run_digest(), alone.run_digest());
    EXPECT_EQ(watched.packet_digest(), alone.packet_digest());
    EXPECT_EQ(sink.records().size(), 2U);
}

TEST(Bus, PacketsEnterOnlyThePacketDigestAndOnlyOnRequest) {
    Bus bus;
    const std::uint64_t run = bus.run_digest();
    const std::uint64_t packet = bus.packet_digest();
    EXPECT_FALSE(bus.wants(Category::kPacket));
    bus.emit(kNoon, PacketSeen{.node = NodeId{1}, .bytes = 9});
    EXPECT_EQ(bus.packet_digest(), packet);
    bus.enable_packet_digest();
    EXPECT_TRUE(bus.wants(Category::kPacket));
    bus.emit(kNoon, PacketSeen{.node = NodeId{1}, .bytes = 9});
    EXPECT_NE(bus.packet_digest(), packet);
    EXPECT_EQ(bus.run_digest(), run);
}

TEST(Bus, SinksGetTheCategoriesTheyAskedForUntilDetached) {
    MemorySink calls;
    MemorySink packets;
    Bus bus;
    bus.attach(calls, {Category::kCall});
    bus.attach(packets, {Category::kPacket});
    bus.emit(kNoon, Called{.node = NodeId{1}, .returned = -22});
    bus.emit(kNoon, PacketSeen{.node = NodeId{1}, .bytes = 9});
    bus.detach(calls);
    bus.emit(kNoon, Called{.node = NodeId{1}});
    bus.emit(kNoon, PacketSeen{.node = NodeId{1}, .bytes = 10});
    EXPECT_EQ(packets.count("packet_seen"), 2U);
    ASSERT_EQ(calls.records().size(), 1U);
    const TraceRecord& record = calls.records().front();
    EXPECT_EQ(record.time, kNoon);
    EXPECT_EQ(record.node, NodeId{1});
    EXPECT_EQ(static_cast<std::int64_t>(record.number("returned")), -22);
    EXPECT_EQ(record.text("colour"), "red");
    EXPECT_EQ(record.find("nothing"), nullptr);
}

TEST(Bus, KeepsACheckpointEvery1024RecordsButNeverTooMany) {
    Bus bus;
    for (std::uint64_t i = 0; i < 3 * Bus::kCheckpointInterval; ++i) {
        bus.emit(kNoon, Called{.node = NodeId{1}});
    }
    ASSERT_EQ(bus.checkpoints().size(), 3U);
    EXPECT_EQ(bus.checkpoints()[1].records, 2 * Bus::kCheckpointInterval);
    EXPECT_EQ(bus.checkpoints()[2].digest, bus.run_digest());

    const std::uint64_t enough = (Bus::kMaxCheckpoints + 2) * Bus::kCheckpointInterval;
    for (std::uint64_t i = bus.run_records(); i < enough; ++i) {
        bus.emit(kNoon, Called{.node = NodeId{1}});
    }
    EXPECT_LE(bus.checkpoints().size(), Bus::kMaxCheckpoints);
    for (const Bus::Checkpoint& checkpoint : bus.checkpoints()) {
        ASSERT_EQ(checkpoint.records % (2 * Bus::kCheckpointInterval), 0U);
    }
}

}  // namespace
}  // namespace fabric::trace
