#include <gtest/gtest.h>

#include "fabric/trace/bus.hpp"
#include "fabric/trace/memory_sink.hpp"

#include "tests/fabric/trace/sample_events.hpp"

namespace fabric::trace {
namespace {

using test::Called;

constexpr SimTime kNoon = kSimStart + 12_us;
constexpr std::uint64_t kAlice = hash_name("alice");
constexpr std::uint64_t kBob = hash_name("bob");

// Two actors act in some order of arrival; the merge has an order of its own.
std::uint64_t digest_of_arrivals(bool alice_first) {
    Bus bus;
    Stream alice(bus);
    Stream bob(bus);
    for (int i = 0; i < 2; ++i) {
        const bool alices_turn = (i == 0) == alice_first;
        (alices_turn ? alice : bob).emit(Called{.node = NodeId{alices_turn ? 0U : 1U}});
    }
    bus.merge(kNoon, kAlice, alice);
    bus.merge(kNoon, kBob, bob);
    return bus.run_digest();
}

TEST(Stream, MakesTheOrderOfArrivalInvisible) {
    EXPECT_EQ(digest_of_arrivals(true), digest_of_arrivals(false));
}

TEST(Stream, KeepsWhoDidIt) {
    Bus a;
    Bus b;
    for (Bus* const bus : {&a, &b}) {
        Stream stream(*bus);
        stream.emit(Called{.node = NodeId{1}});
        bus->merge(kNoon, bus == &a ? kAlice : kBob, stream);
    }
    EXPECT_NE(a.run_digest(), b.run_digest());
}

TEST(Stream, AnEmptyOneLeavesNoTrace) {
    Bus bus;
    Stream stream(bus);
    const std::uint64_t before = bus.run_digest();
    bus.merge(kNoon, kAlice, stream);
    EXPECT_EQ(bus.run_digest(), before);
}

TEST(Stream, IsEmptyAgainAfterItsMerge) {
    Bus bus;
    Stream stream(bus);
    stream.emit(Called{.node = NodeId{1}});
    EXPECT_FALSE(stream.empty());
    bus.merge(kNoon, kAlice, stream);
    EXPECT_TRUE(stream.empty());
    EXPECT_EQ(bus.run_records(), 1U);
}

TEST(Stream, RecordsGetTheTimeOfTheMerge) {
    Bus bus;
    MemorySink sink;
    bus.attach(sink, CategorySet::all());
    Stream stream(bus);
    stream.emit(Called{.node = NodeId{1}});
    EXPECT_TRUE(sink.records().empty());
    bus.merge(kNoon, kAlice, stream);
    ASSERT_EQ(sink.records().size(), 1U);
    EXPECT_EQ(sink.records().front().time, kNoon);
}

TEST(Redirect, SendsTheBusToAStreamForAScope) {
    Bus bus;
    Stream stream(bus);
    const std::uint64_t before = bus.run_digest();
    {
        const Bus::Redirect redirect(bus, stream);
        bus.emit(kNoon, Called{.node = NodeId{1}});
    }
    EXPECT_EQ(bus.run_digest(), before);
    EXPECT_FALSE(stream.empty());
    bus.emit(kNoon, Called{.node = NodeId{1}});
    EXPECT_NE(bus.run_digest(), before);
}

}  // namespace
}  // namespace fabric::trace
