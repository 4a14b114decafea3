// The part of a verdict beside passed and failed: faults that mean nothing, and runs that tested
// nothing.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

// Members that a fault lacks are named in the words of scenarios.
TEST(FaultsOfScenarios, NameTheKeyThatIsMissing) {
    struct Lacking {
        const char* fault;
        const char* says;
    };
    for (const auto& [fault, says] : {
             Lacking{"action: link_down",
                     "test.yaml:1:10: link is missing; topology 'star:2' has h0-s0"},
             Lacking{"action: host_kill", "1:10: node is missing; topology 'star:2' has h0 to h1"},
             Lacking{"action: port_error", "1:10: node is missing: a host or a switch of"},
             Lacking{"action: switch_death", "1:10: node is missing: a switch of"},
             Lacking{"action: switch_death, node: h0", "1:10: node: 'h0' is no switch"},
             Lacking{"action: delay", "1:10: delay: duration is missing"},
             Lacking{"action: drop, duration: 1ms", "1:10: drop does not read duration"},
             Lacking{
                 "action: corrupt, link: h0-s0",
                 "1:10: corrupt does not read link; which packets it is done to: \"when: {link: "
                 "...}\""},
             Lacking{"action: nak, status: REM_OP_ERR", "1:10: nak does not read status"},
             Lacking{"action: call, errno: ENOMEM, when: {psn: 1, call: ibv_reg_mr}",
                     "1:10: call does not read when: psn"},
             Lacking{"action: call, when: {call: ibv_x}", "1:10: when: call 'ibv_x' is no verb"},
         }) {
        const auto scenario = parse(std::string("faults: [{") + fault + "}]", "test.yaml", {});
        ASSERT_TRUE(scenario) << scenario.error();
        const Verdict verdict = run(*scenario);
        EXPECT_NE(verdict.error.find(says), std::string::npos) << verdict.error;
        EXPECT_TRUE(verdict.is_input);
    }
}

// It passes, and yet nothing was tested.
TEST(Warnings, AreOfFaultsThatNeverFiredAndOfNoWork) {
    const auto warnings = [](const char* text) {
        const auto scenario = parse(text, "test.yaml", {});
        EXPECT_TRUE(scenario) << scenario.error();
        const Verdict verdict = run(*scenario);
        EXPECT_TRUE(verdict.passed()) << report(verdict, {});
        return verdict.warnings;
    };
    EXPECT_THAT(warnings(""), testing::ElementsAre(testing::HasSubstr("nothing is done")));
    EXPECT_THAT(warnings("hosts: {h0: {memory: {m: {size: 4KiB}}}}"), testing::SizeIs(1));
    constexpr const char* kWork = R"(
connections: {c: {between: [h0, h1]}}
hosts: {h0: {do: [{write: {qp: c, id: 1}}, {poll: {qp: c}}]}}
)";
    EXPECT_THAT(warnings(kWork), testing::IsEmpty());
    const std::string fault = std::string(kWork) + "faults: [{name: late, action: drop, ";
    EXPECT_THAT(warnings((fault + "when: {psn: 77}}]").c_str()),
                testing::ElementsAre("the fault \"late\" never fired: no packet matched"));
    EXPECT_THAT(warnings((fault + "when: {from: h0, nth: 9}}]").c_str()),
                testing::ElementsAre(
                    "the fault \"late\" never fired: it waits for packet number 9 that matches, "
                    "and only 1 matched"));
    EXPECT_THAT(warnings((fault + "when: {from: h0, chance: 1/1000000}}]").c_str()),
                testing::ElementsAre("the fault \"late\" never fired: 1 packets matched, and its "
                                     "chance of 1/1000000 hit none of them"));
    EXPECT_THAT(
        warnings((std::string(kWork) + "faults: [{name: power, action: host_kill, node: h1, "
                                       "when: {at: 1s}}]\nrun: {stop: 1ms}")
                     .c_str()),
        testing::ElementsAre(testing::MatchesRegex(
            "the fault \"power\" never fired: the run ended at .*us, before its time")));
    EXPECT_THAT(
        warnings((fault + "when: {psn: 77}}, {name: next, action: drop, when: {after: "
                          "late}}]")
                     .c_str()),
        testing::Contains(
            "the fault \"next\" never fired: \"late\", which it comes after, did not fire"));
    EXPECT_THAT(warnings((fault + "when: {nth: 1, from: h0}}]").c_str()), testing::IsEmpty());
}

TEST(Warnings, SayWhichTimeOfAPacketIsMeant) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1]}}
hosts: {h0: {do: [{write: {qp: c, length: 200KiB}}, {poll: {qp: c}}]}}
faults: [{name: late, action: drop, when: {link: h0-s0, from: h0, at: 5us, until: 6us}}]
)");
    EXPECT_THAT(verdict.warnings,
                testing::ElementsAre("the fault \"late\" never fired: no packet matched; at and "
                                     "until are compared with the time at which a packet is queued "
                                     "at the link, and it may start there later"));
}

TEST(Connections, ThatTheDeviceRefusesHaveTheirPlaceAndTheReason) {
    const auto error = [](std::string_view keys) {
        return run_text(fmt::format("connections:\n  c: {{between: [h0, h1], {}}}\n", keys)).error;
    };
    EXPECT_THAT(
        error("port: 2"),
        testing::MatchesRegex("test.yaml:2:32: port: h0/c: ibv_modify_qp refused .0x10001.: "
                              "RESET to INIT: port_num 2 is none of the ports 1 to 1"));
    EXPECT_THAT(error("ends: {h1: {pkey_index: 500}}"),
                testing::StartsWith("test.yaml:2:50: pkey_index: h1/c: ibv_modify_qp refused"));
    EXPECT_THAT(error("initiator_depth: 200"),
                testing::AllOf(testing::StartsWith("test.yaml:2:43: initiator_depth: h0/c: "),
                               testing::HasSubstr("max_rd_atomic 200 is more than 16")));
    EXPECT_THAT(error("sends: 32768, inline: 4096"), testing::StartsWith("test.yaml:2:"));
}

// A receiver without receives and rnr_retry 7, the default.
TEST(EndlessRetries, EndARunThatHasNoStop) {
    const std::string text = R"(
connections: {c: {between: [h0, h1], min_rnr_timer: 24}}
hosts: {h0: {do: [{write: {qp: c}}, {send: {qp: c}}, {poll: {qp: c, count: 2}}]}}
)";
    const Verdict ended = run_text(text);
    ASSERT_EQ(ended.failures.size(), 1U) << report(ended, {});
    EXPECT_THAT(
        ended.failures[0].happened,
        testing::MatchesRegex("h0 waits at line 3: poll, since .*; nothing happens any more "
                              "but retries.*run: .stop: TIME.*h0/c: request 1: h1/c has no "
                              "receive posted; RNR retried [0-9]+ times, and rnr_retry 7 "
                              "retries for ever"));
    EXPECT_LT(ended.time_ps, std::int64_t{100'000'000'000'000});  // 100 s
    EXPECT_EQ(ended.digest, run_text(text).digest);
    // Something is to happen after that time.
    const Verdict late = run_text(text + R"(
faults: [{name: late, action: qp_error, qp: h0/c, when: {at: 110s}}]
expect: {completions: {h0/c: [{}, {status: WR_FLUSH_ERR}]}}
)");
    EXPECT_THAT(late.fired.at("late"), testing::SizeIs(1)) << report(late, {});
    EXPECT_GE(late.time_ps, std::int64_t{110'000'000'000'000});
    const Verdict stopped = run_text(text, {"run.stop=90s"});
    EXPECT_THAT(stopped.failures.at(0).happened, testing::HasSubstr("nothing is left before"));
}

TEST(Replay, QuotesFilesForAShell) {
    Verdict verdict;
    verdict.file = "o dd/it's.yaml";
    verdict.failures.push_back({});
    EXPECT_THAT(report(verdict, {"run.seed=1"}),
                testing::HasSubstr("replay: simverbs scenario 'o dd/it'\\''s.yaml' --set "
                                   "'run.seed=1'\n"));
}

// Timeout code 31 is 8796 s, of which the default stop is the ninth part.
TEST(Warnings, AreOfADefaultStopBeforeATimeout) {
    constexpr const char* kSlow = R"(
connections: {c: {between: [h0, h1], timeout: 31, retries: 1}}
hosts: {h0: {do: [{write: {qp: c, id: 1}}, {poll: {qp: c, status: RETRY_EXC_ERR}}]}}
faults: [{action: drop, when: {from: h0, count: every}}]
)";
    const Verdict cut = run_text(kSlow);
    EXPECT_FALSE(cut.passed());
    EXPECT_THAT(cut.warnings,
                testing::ElementsAre(testing::MatchesRegex(
                    "the run ended at its default stop, 1000.000s of virtual time, while h0/c "
                    "still waited for its ACK timeout until 8796.*run.stop=TIME.*")));
    const Verdict longer = run_text(kSlow, {"run.stop=20000s"});
    EXPECT_TRUE(longer.passed()) << report(longer, {});
    EXPECT_THAT(longer.warnings, testing::IsEmpty());
}

// An explanation has the names and ids of the scenario beside the numbers of the trace.
TEST(Explanations, NameEndsRequestsAndFaultsAsTheScenarioDoes) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1], timeout: 10, retries: 1}}
hosts:
  h0: {do: [{write: {qp: c, id: 7}}, {write: {qp: c, id: 8}}, {poll: {qp: c, count: 2}}]}
faults:
  - {name: first, action: mark}
  - {action: drop, when: {from: h0, psn: 2, count: every}}
expect: {completions: {h0/c: [{id: 7}, {id: 8}]}}
)");
    EXPECT_FALSE(verdict.passed());
    EXPECT_THAT(verdict.explanation,
                testing::HasSubstr("request 1 (id 8) of h0/c (QP 0x10001) completed"));
    EXPECT_THAT(verdict.explanation, testing::HasSubstr("fault \"fault1\" (drop)"));
    EXPECT_EQ(verdict.fired.at("fault1").size(), 2U);
    ASSERT_EQ(verdict.packets_hit.at("fault1").size(), 2U);
    EXPECT_EQ(verdict.packets_hit.at("fault1")[1],
              (PacketHit{"h0/c", false, 2, 2, "RDMA_WRITE_ONLY", "h0"}));
}

}  // namespace
}  // namespace scenarios
