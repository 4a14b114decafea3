// One run, and for each kind of expectation what is true of it and what is not.
#include <cstdio>
#include <ostream>

#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

// Two messages arrive, a third fails with a key that is not there.
constexpr std::string_view kRun = R"(
connections:
  c: {between: [h0, h1]}
hosts:
  h0:
    memory: {data: {size: 4096, fill: 7}}
    do:
      - send: {qp: c, id: 1, memory: data, length: 3000}
      - poll: {qp: c}
      - send: {qp: c, id: 2, memory: data, length: 100, imm: 9}
      - fetch_and_add: {qp: c, id: 3, at: 256, to: 8192, add: 5}
      - poll: {qp: c, count: 2}
      - write: {qp: c, id: 4, rkey: bad}
      - poll: {qp: c}
  h1:
    do:
      - receive: {qp: c, id: 10, count: 2, length: 4096, step: 4096}
      - poll: {qp: c, count: 2}
faults:
  - {name: lost, action: drop, when: {from: h0, nth: 2}}
  - {name: never, action: drop, when: {from: h0, nth: 1000}}
)";

struct Claim {
    const char* name;
    const char* right;
    const char* wrong;
    const char* says;  // of the wrong one
};

void PrintTo(const Claim& claim, std::ostream* out) {  // NOLINT(readability-identifier-naming)
    *out << claim.name;
}

constexpr Claim kClaims[] = {
    {"status", "completions: {h0/c: [{id: 1}, {id: 2}, {id: 3}, {id: 4, status: REM_ACCESS_ERR}]}",
     "completions: {h0/c: [{id: 1}, {id: 2}, {id: 3}, {id: 4}]}", "REM_ACCESS_ERR"},
    {"order",
     "completions: {h0/c: [{id: 1}, {id: 2}, {id: 3}, {rest: true, status: REM_ACCESS_ERR}]}",
     "completions: {h0/c: [{id: 2}, {id: 1}]}", "completion 1"},
    {"opcode", "completions: {h1/c: [{id: 10, opcode: RECV, count: 2}]}",
     "completions: {h1/c: [{id: 10, opcode: SEND, count: 2}]}", "opcode SEND"},
    {"bytes", "completions: {h1/c: [{bytes: 3000}, {bytes: 100, imm: 9}]}",
     "completions: {h1/c: [{bytes: 2999}, {bytes: 100}]}", "bytes 2999"},
    {"immediate", "completions: {h1/c: [{}, {imm: 9}]}", "completions: {h1/c: [{}, {imm: 8}]}",
     "imm 8"},
    {"no_more", "completions: {h1/c: [{count: 2}]}", "completions: {h1/c: [{count: 1}]}",
     "no further one"},
    {"no_less", "completions: {h1/c: [{count: 2}]}", "completions: {h1/c: [{count: 3}]}",
     "no further completion"},
    {"completion_late", "completions: {h1/c: [{at_least: 1us}, {}]}",
     "completions: {h1/c: [{at_least: 10s}, {}]}", "10s or later"},
    {"completion_early", "completions: {h1/c: [{at_most: 10s}, {}]}",
     "completions: {h1/c: [{at_most: 1ns}, {}]}", "1ns or earlier"},
    {"qp_state", "qp_states: {h0/c: ERR, h1/c: ERR}", "qp_states: {h0/c: RTS}", "h0/c in RTS"},
    {"event", "events: {h0: [], h1: [{event: QP_ACCESS_ERR, of: c}]}", "events: {h1: [QP_REQ_ERR]}",
     "QP_REQ_ERR"},
    {"event_subject", "events: {h1: [{event: QP_ACCESS_ERR, of: c}]}",
     "events: {h1: [{event: QP_ACCESS_ERR, of: d}]}", "of d"},
    {"no_event", "events: {h0: []}", "events: {h1: []}", "no further one"},
    {"counter", "counters: {h0: {retransmissions: {at_least: 1}}, h1: {naks_sent: {at_least: 1}}}",
     "counters: {h0: {retransmissions: 0}}", "retransmissions of h0"},
    {"counter_range", "counters: {h1: {messages_delivered: {at_least: 2, at_most: 9}}}",
     "counters: {h1: {messages_delivered: {at_least: 100}}}", "100 or more"},
    {"fired", "fired: {lost: 1, never: 0}", "fired: {never: 1}", "firings of never"},
    {"pattern", "memory: [{host: h1, length: 3000, pattern: 7}]",
     "memory: [{host: h1, length: 3000, pattern: 8}]", "pattern 8"},
    {"untouched", "memory: [{host: h1, at: 65536, untouched: true}]",
     "memory: [{host: h1, length: 4096, untouched: true}]", "untouched"},
    {"changed", "memory: [{host: h1, length: 4096, untouched: false}]",
     "memory: [{host: h1, at: 65536, untouched: false}]", "changed"},
    {"same_as", "memory: [{host: h1, length: 3000, same_as: {host: h0, memory: data}}]",
     "memory: [{host: h1, length: 3000, same_as: {host: h0, memory: data, at: 1}}]", "the same"},
    {"checksum", "memory: [{host: h0, at: 4096, length: 8, checksum: 34c96acdcadb1bbb}]",
     "memory: [{host: h0, at: 4096, length: 8, checksum: 34c96acdcadb1bbc}]", "checksum"},
    {"word", "memory: [{host: h1, at: 8192, word: 5}]", "memory: [{host: h1, at: 8192, word: 6}]",
     "word at 8192"},
    {"time_bound", "time: {at_most: 10s}", "time: {at_most: 1us}", "1us or earlier"},
    {"time_least", "time: {at_least: 1us}", "time: {at_least: 10s}", "10s or later"},
    {"never_status", "never: [{status: RETRY_EXC_ERR}]", "never: [{status: REM_ACCESS_ERR}]",
     "never"},
    {"never_opcode", "never: [{opcode: RDMA_READ}]", "never: [{opcode: FETCH_ADD}]", "never"},
    {"never_event", "never: [{event: PORT_ERR}]", "never: [{event: QP_ACCESS_ERR}]", "never"},
    {"never_state", "never: [{state: SQE}]", "never: [{state: ERR, host: h1}]", "never"},
    {"never_record", "never: [{record: credit_loop}]", "never: [{record: fault_fired}]", "never"},
    {"never_at_that_time", "never: [{record: fault_fired, from: 100s}]",
     "never: [{record: fault_fired, until: 100s}]", "never"},
    {"stopped", "stopped: false", "stopped: true", "every program ended"},
};

class Expectation : public ::testing::TestWithParam<Claim> {};

TEST_P(Expectation, HoldsWhereItIsTrue) {
    const Verdict verdict = run_text(std::string(kRun) + "expect: {" + GetParam().right + "}\n");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
}

TEST_P(Expectation, FailsWhereItIsNot) {
    const Verdict verdict = run_text(std::string(kRun) + "expect: {" + GetParam().wrong + "}\n");
    EXPECT_EQ(verdict.error, "");
    ASSERT_FALSE(verdict.failures.empty());
    const std::string text = report(verdict, {});
    EXPECT_NE(text.find(GetParam().says), std::string::npos) << text;
    EXPECT_NE(text.find("FAIL"), std::string::npos);
    EXPECT_NE(text.find("replay: simverbs scenario"), std::string::npos);
    EXPECT_GT(verdict.failures.front().position.line, 20U) << "where it was expected";
}

INSTANTIATE_TEST_SUITE_P(Of, Expectation, ::testing::ValuesIn(kClaims),
                         [](const auto& claim) { return std::string(claim.param.name); });

TEST(Expectations, TheDigestIsThatOfTheRunBefore) {
    const Verdict first = run_text(kRun);
    ASSERT_TRUE(first.passed()) << report(first, {});
    char text[64];
    std::snprintf(text, sizeof text, "expect: {digest: \"%016llx\"}\n",
                  static_cast<unsigned long long>(first.digest));
    EXPECT_TRUE(run_text(std::string(kRun) + text).passed());
    EXPECT_FALSE(run_text(std::string(kRun) + text, {"hosts.h0.do.0.send.length=2000"}).passed());
}

TEST(Expectations, HoldInTheMiddleOfAProgram) {
    const auto with = [](const char* state) {
        return run_text(std::string(R"(
connections: {c: {between: [h0, h1]}}
hosts: {h0: {do: [{expect: {qp_states: {h0/c: )") +
                        state + "}}}, {modify: {qp: c, state: ERR}}]}}\n");
    };
    EXPECT_TRUE(with("RTS").passed());
    EXPECT_FALSE(with("ERR").passed());
}

TEST(Expectations, AProgramThatNeverEndsIsAFailure) {
    const Verdict verdict =
        run_text("connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{poll: {qp: c}}]}}\n");
    ASSERT_EQ(verdict.failures.size(), 1U);
    EXPECT_NE(verdict.failures[0].happened.find("h0 waits at line 2: poll"), std::string::npos);
    EXPECT_TRUE(run_text("connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{poll: {qp: "
                         "c}}]}}\nexpect: {stopped: true}\n")
                    .passed());
}

TEST(Expectations, AVerbThatAnswersOtherwiseIsAFailure) {
    const char* const text =
        "connections: {c: {between: [h0, h1]}}\n"
        "hosts: {h0: {do: [{modify: {qp: c, state: INIT%s}}]}}\n";
    const auto with = [text](const char* answer) {
        std::string whole = text;
        whole.replace(whole.find("%s"), 2, answer);
        return run_text(whole);
    };
    EXPECT_FALSE(with("").passed());
    EXPECT_TRUE(with(", errno: EINVAL").passed());
}

// A payload that changes on its way with a valid CRC would break them; here memory is overwritten
// between the arrival and the completion's polling.
TEST(Invariants, AreBrokenByWhatAReceiveDoesNotHold) {
    const auto with = [](const char* expect) {
        return run_text(std::string(R"(
connections: {c: {between: [h0, h1]}}
hosts:
  h0: {do: [{send: {qp: c, id: 1}}, {poll: {qp: c}}]}
  h1: {do: [{receive: {qp: c, id: 2}}, {sleep: 1ms}, {fill: {pattern: 5}}, {poll: {qp: c}}]}
)") + expect);
    };
    const Verdict broken = with("");
    ASSERT_EQ(broken.failures.size(), 1U);
    EXPECT_EQ(broken.failures[0].expected, "invariant integrity");
    EXPECT_TRUE(with("expect: {invariants: {integrity: false}}\n").passed());
}

TEST(Run, LeavesNothingToTheNext) {
    const Verdict first = run_text(kRun);
    run_text("fabric: star:5\nrun: {seed: 9, personality: connectx6}\n");
    const Verdict again = run_text(kRun);
    EXPECT_EQ(first.digest, again.digest);
    EXPECT_TRUE(first.deterministic);
    EXPECT_TRUE(again.deterministic);
}

}  // namespace
}  // namespace scenarios
