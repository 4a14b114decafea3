// Delta debugging on things that are no scenarios.
#include "scenarios/search/ddmin.hpp"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

namespace scenarios {
namespace {

std::size_t left(const Kept& kept) {
    return static_cast<std::size_t>(std::ranges::count(kept, true));
}

TEST(Ddmin, LeavesNothingWhereNothingIsNeeded) {
    EXPECT_EQ(left(ddmin(100, [](const Kept&) { return true; })), 0U);
    EXPECT_TRUE(ddmin(0, [](const Kept&) { return true; }).empty());
}

TEST(Ddmin, LeavesEverythingWhereAllIsNeeded) {
    const auto all = [](const Kept& kept) { return left(kept) == kept.size(); };
    EXPECT_EQ(left(ddmin(17, all)), 17U);
}

TEST(Ddmin, FindsThingsThatAreFarApart) {
    const auto both = [](const Kept& kept) { return kept[3] && kept[96] && kept[41]; };
    const Kept found = ddmin(100, both);
    EXPECT_EQ(left(found), 3U);
    EXPECT_TRUE(both(found));
}

TEST(Ddmin, FindsOneOfSeveralReasons) {
    const auto either = [](const Kept& kept) { return (kept[0] && kept[1]) || kept[9]; };
    const Kept found = ddmin(10, either);
    EXPECT_TRUE(either(found));
    EXPECT_LE(left(found), 2U);
}

// No single thing can be left out of what is found, for any set of pairs.
TEST(Ddmin, LeavesNoSingleThingTooMuch) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const auto test = [seed](const Kept& kept) {
            const std::size_t a = seed * 7 % 23;
            const std::size_t b = seed * 11 % 23;
            return kept[a] && kept[b] && (left(kept) % 2 == 0 || left(kept) < 6);
        };
        if (!test(Kept(23, true)) && !test(Kept(22, true))) {
            continue;
        }
        Kept found = ddmin(23, test);
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (found[i] && test(found)) {
                found[i] = false;
                EXPECT_FALSE(test(found)) << "seed " << seed << ", thing " << i;
                found[i] = true;
            }
        }
    }
}

}  // namespace
}  // namespace scenarios
