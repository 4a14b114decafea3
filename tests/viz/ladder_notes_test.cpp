// Notes on the life lines of ladders.
#include <cstdint>

#include <gtest/gtest.h>

#include "drawing.hpp"
#include "ladder_of.hpp"
#include "viz/ladder.hpp"

namespace viz_test {
namespace {

void flush(LadderOf& of, std::int64_t count) {
    of.send(0, "SEND_ONLY", 100);
    of.arrive(1, 100);
    for (std::int64_t i = 0; i < count; ++i) {
        of.add(kMicrosecond, 0, "completion", "completion",
               {{"qpn", kQp},
                {"index", 7 + i},
                text_field("opcode", "RECV"),
                text_field("status", "WR_FLUSH_ERR")});
    }
}

TEST(LadderNotes, SayInOneHowManyRequestsWereFlushedAtOnce) {
    LadderOf of;
    flush(of, 40);
    const Drawing drawing = of.drawing();
    EXPECT_TRUE(find_text(drawing, "failed: RECV, requests 7 to 46: WR_FLUSH_ERR"));
    EXPECT_FALSE(find_text(drawing, "failed: RECV, request 7"));
    EXPECT_FALSE(find_text(drawing, "failed: RECV, request 8"));
}

TEST(LadderNotes, NameEachOfAFew) {
    LadderOf of;
    flush(of, 3);
    const Drawing drawing = of.drawing();
    for (const char* const words : {"request 7:", "request 8:", "request 9:"}) {
        EXPECT_TRUE(find_text(drawing, words)) << words;
    }
}

}  // namespace
}  // namespace viz_test
