// Suggestions for misspelled words.
#include "fabric/core/nearest.hpp"

#include <array>
#include <string_view>

#include <gtest/gtest.h>

namespace fabric {
namespace {

TEST(Nearest, IsWhatHasTheFewestChangedLetters) {
    constexpr auto kWords = std::to_array<std::string_view>({"ends", "latency", "rate"});
    EXPECT_EQ(nearest("latncy", kWords), "latency");
    EXPECT_EQ(nearest("raet", kWords), "rate");
    EXPECT_EQ(nearest("Ends", kWords), "ends");
    EXPECT_FALSE(nearest("bandwidth", kWords));
    EXPECT_FALSE(nearest("xy", kWords));
}

TEST(Nearest, MakesASentenceOrNothing) {
    constexpr auto kWords = std::to_array<std::string_view>({"ends", "latency", "rate"});
    EXPECT_EQ(suggestion("latncy", kWords), ": did you mean \"latency\"?");
    EXPECT_EQ(suggestion("bandwidth", kWords), "");
}

}  // namespace
}  // namespace fabric
