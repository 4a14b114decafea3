// What is made small fails for the reason for which the whole failed, and is not larger.
#include "scenarios/search/shrink.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace scenarios {
namespace {

// Losses by chance, with receives that shrinking may take away: then whoever sends is told to wait
// and sends again, and what is sent again may be lost, too.
constexpr const char* kLossy = R"(
connections: {c: {between: [h0, h1], timeout: 8, retries: 2}}
hosts:
  h1: {do: [{receive: {qp: c, count: 3}}, {poll: {qp: c, count: 3}}]}
  h0: {do: [{send: {qp: c, id: 1, count: 3}}, {poll: {qp: c, count: 3}}]}
run: {stop: 1s}
faults: [{name: lossy, action: drop, when: {from: h0, chance: 2/3, count: every}}]
)";

Root root_of_run(const std::string& text) {
    std::string errors;
    const auto scenario = parse(text, "small.yaml", {}, errors);
    EXPECT_TRUE(scenario) << errors;
    return scenario ? run(*scenario).root : Root{};
}

TEST(Shrink, KeepsTheReasonAndNeverGrows) {
    const std::string file = testing::TempDir() + std::to_string(getpid()) + "_shrink.yaml";
    std::ofstream(file) << kLossy;
    int tried = 0;
    for (std::uint64_t seed = 1; tried < 3 && seed <= 12; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        ShrinkOptions options;
        options.seed = seed;
        const ShrinkResult result = shrink(file, options, [](std::string_view) {});
        if (result.error.find("it passes") != std::string::npos) {
            continue;
        }
        ++tried;
        ASSERT_EQ(result.error, "");
        EXPECT_LE(result.after.faults, result.before.faults) << result.text;
        EXPECT_LE(result.after.hosts, result.before.hosts);
        EXPECT_LE(result.after.operations, result.before.operations);
        EXPECT_FALSE(result.verdict.passed());
        EXPECT_EQ(result.verdict.root, (Root{"packets lost", {"drop"}})) << result.text;
        EXPECT_EQ(root_of_run(result.text), result.verdict.root);
    }
    EXPECT_EQ(tried, 3);
    std::filesystem::remove(file);
}

}  // namespace
}  // namespace scenarios
