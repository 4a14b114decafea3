// Built-in traffic: every message arrives, once and whole, with loss and without.
#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

struct Traffic {
    const char* name;
    const char* workload;
    std::size_t completions;
};
constexpr Traffic kTraffic[] = {
    {"ping_pong", "{ping_pong: {between: [h0, h1], messages: 20, size: 100}}", 80},
    {"stream", "{stream: {from: h0, to: h2, messages: 30, size: 5000, window: 4}}", 60},
    {"all_to_all", "{all_to_all: {messages: 3, size: 64}}", 72},  // 12 ways, 3 messages, 2 each
    {"incast", "{incast: {to: h3, messages: 10, size: 4096}}", 60},
    {"key_value", "{key_value: {server: h1, messages: 4, size: 256}}", 72},  // 3 clients
};

class Workload : public ::testing::TestWithParam<Traffic> {};

TEST_P(Workload, Completes) {
    const std::string text =
        std::string("fabric: star:4\nworkloads: {w: ") + GetParam().workload + "}\n";
    const Verdict verdict = run_text(text);
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_EQ(verdict.completed.size(), GetParam().completions);
}

TEST_P(Workload, SurvivesLoss) {
    const std::string text = std::string("fabric: star:4\nworkloads: {w: ") + GetParam().workload +
                             "}\nfaults: [{name: lossy, action: drop, when: {chance: 1/20}}]\n"
                             "expect: {fired: {lossy: {at_least: 1}}}\n";
    const Verdict verdict = run_text(text);
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_EQ(verdict.completed.size(), GetParam().completions);
    EXPECT_EQ(run_text(text).digest, verdict.digest);
    EXPECT_NE(run_text(text, {"run.seed=2"}).digest, verdict.digest);
}

TEST_P(Workload, MayHaveAnyName) {
    const std::string text =
        std::string("fabric: star:4\nworkloads: {\"a, b]: {\": ") + GetParam().workload + "}\n";
    const Verdict verdict = run_text(text);
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_EQ(verdict.completed.size(), GetParam().completions);
}

INSTANTIATE_TEST_SUITE_P(Of, Workload, ::testing::ValuesIn(kTraffic),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Workloads, AKeyValueStoreGivesBackWhatWasPut) {
    const Verdict verdict = run_text(R"(
workloads: {kv: {key_value: {server: h1, messages: 8, size: 100}}}
expect: {memory: [{host: h0, memory: kv, at: 800, length: 800, same_as: {host: h0, memory: kv}},
                  {host: h1, memory: kv, length: 800, same_as: {host: h0, memory: kv}}]}
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
}

}  // namespace
}  // namespace scenarios
