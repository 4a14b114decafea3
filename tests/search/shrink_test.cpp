// A scenario that is made small fails for the reason for which the whole failed, and is not larger.
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
    const auto scenario = parse(text, "small.yaml", {});
    EXPECT_TRUE(scenario) << scenario.error();
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
        EXPECT_EQ(result.text.find("chance"), std::string::npos) << result.text;
        EXPECT_EQ(result.text.find("every"), std::string::npos) << result.text;
    }
    EXPECT_EQ(tried, 3);
    std::filesystem::remove(file);
}

// Faults without names are told apart by the numbers that the run gives them, and one that others
// come after is taken apart, too. Each firing stays the one it was when others are left out.
TEST(Shrink, TakesFaultsApartByThePacketsThatTheyHit) {
    const std::string file = testing::TempDir() + std::to_string(getpid()) + "_apart.yaml";
    std::ofstream(file) << R"(
connections: {c: {between: [h0, h1], timeout: 8, retries: 2}}
hosts:
  h0: {do: [{write: {qp: c, id: 1, count: 6}}, {poll: {qp: c, count: 6, status: SUCCESS}}]}
run: {stop: 1s}
faults:
  - {name: idle, action: drop, when: {from: h1, nth: 1000}}
  - {action: drop, when: {from: h0, opcode: RDMA_WRITE, nth: 4, count: every}}
  - {name: other, action: mark, when: {after: fault1}}
)";
    const ShrinkResult result = shrink(file, {}, [](std::string_view) {});
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(result.after.faults, 3U) << result.text;
    for (const char* const rest : {"count: every", "nth", "idle", "other"}) {
        EXPECT_EQ(result.text.find(rest), std::string::npos) << rest << "\n" << result.text;
    }
    EXPECT_NE(result.text.find("attempt: 3"), std::string::npos) << result.text;
    EXPECT_FALSE(result.verdict.passed());
    std::filesystem::remove(file);
}

}  // namespace
}  // namespace scenarios
