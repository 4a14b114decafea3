// Configurations of Lumina: what becomes of their traffic and events.
#include "scenarios/engine/lumina.hpp"

#include <string>

#include "tests/scenarios/scenario_text.hpp"
#include "tests/support/outcome.hpp"

namespace scenarios {
namespace {

std::string config(const std::string& verb, const std::string& events) {
    return "switch: {port-speed: 100G}\ntraffic:\n  num-qps: 2\n  rdma-verb: " + verb +
           "\n  num-msgs-per-qp: 3\n  mtu: 1024\n  message-size: 5000\n  tx-depth: 1\n"
           "  min-retransmit-timeout: 10\n  max-retransmit-retry: 7\n  data-pkt-events:\n" +
           events;
}

Verdict run_lumina(const std::string& text) {
    Verdict verdict;
    const auto imported = import_lumina(text, "lumina.yml");
    EXPECT_TRUE(imported) << imported.error();
    const auto scenario =
        imported.and_then([](const std::string& made) { return parse(made, "imported.yaml", {}); });
    EXPECT_TRUE(scenario) << scenario.error();
    return scenario ? run(*scenario) : verdict;
}

class EachVerb : public ::testing::TestWithParam<const char*> {};
TEST_P(EachVerb, IsRunWithItsEvents) {
    const Verdict verdict =
        run_lumina(config(GetParam(),
                          "    - {qpn: 0, psn: 4, type: ecn, iter: 1}\n"
                          "    - {qpn: 1, psn: 2, type: drop, iter: 1}\n"
                          "    - {qpn: 0, psn: 0, type: bit-error, iter: 1}\n"));
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_EQ(verdict.fired.size(), 9U) << "an event of each of three messages";
}
INSTANTIATE_TEST_SUITE_P(Of, EachVerb, ::testing::Values("write", "read", "send"),
                         [](const auto& row) { return std::string(row.param); });

TEST(Lumina, RetransmissionsAreAddressedByIteration) {
    const Verdict verdict = run_lumina(config("write",
                                              "    - {qpn: 1, psn: 2, type: drop, iter: 1}\n"
                                              "    - {qpn: 1, psn: 2, type: drop, iter: 2}\n"));
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
}

TEST(Lumina, AllPacketsOfEachMessage) {
    const Verdict verdict =
        run_lumina(config("write", "    - {qpn: 0, psn: all, type: ecn, iter: 1}\n"));
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_EQ(verdict.fired.at("event1").size(), 15U);
}

TEST(Lumina, MistakesHaveTheirPlace) {
    const auto refused = [](const std::string& events) {
        return fabric::error_of(import_lumina(config("write", events), "lumina.yml"));
    };
    EXPECT_NE(refused("    - {qpn: 2, psn: 0, type: drop, iter: 1}\n").find("lumina.yml:12:13"),
              std::string::npos);
    EXPECT_NE(refused("    - {qpn: 0, psn: 5, type: drop, iter: 1}\n").find("lumina.yml:12:21"),
              std::string::npos);
    EXPECT_NE(refused("    - {qpn: 0, psn: 0, type: dorp, iter: 1}\n").find("drop"),
              std::string::npos);
    EXPECT_NE(refused("    - {qpn: 0, psn: 0, type: drop}\n").find("\"iter\" is missing"),
              std::string::npos);
    EXPECT_NE(fabric::error_of(import_lumina("switch: {}\n", "lumina.yml"))
                  .find("\"traffic\" is missing"),
              std::string::npos);
}

}  // namespace
}  // namespace scenarios
