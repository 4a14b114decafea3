#include "fabric/trace/memory_sink.hpp"

#include <gtest/gtest.h>

#include "tests/fabric/trace/sample_events.hpp"

namespace fabric::trace {
namespace {

TEST(MemorySink, ForgetsTheOldestAndCountsThem) {
    MemorySink sink(2);
    Bus bus;
    bus.attach(sink, CategorySet::all());
    for (int i = 0; i < 5; ++i) {
        bus.emit(kSimStart, test::Called{.node = NodeId{0}, .returned = i});
    }
    EXPECT_EQ(sink.forgotten(), 3U);
    ASSERT_EQ(sink.named("called").size(), 2U);
    EXPECT_EQ(sink.named("called")[0]->number("returned"), 3U);
    sink.clear();
    EXPECT_TRUE(sink.records().empty());
}

}  // namespace
}  // namespace fabric::trace
