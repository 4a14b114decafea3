// Programs of operations that faults stop and kill.
#include <algorithm>

#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000'000;  // in picoseconds

// When the request completed; -1: it has not.
std::int64_t time_of(const Verdict& verdict, std::string_view end, std::uint64_t id) {
    const auto found = std::ranges::find_if(verdict.completed, [&](const Completed& completed) {
        return completed.end == end && completed.id == id;
    });
    return found == verdict.completed.end() ? -1 : found->time_ps;
}

// A program before another one in the order waits for its signal, two share a queue, and one gives
// up: each goes on at the instant of what it waits for.
TEST(WaitingPrograms, GoOnWhenWhatTheyWaitForHasCome) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1]}, d: {between: [h0, h1]}}
programs:
  begins: {host: h0, do: [{wait: ready}, {send: {qp: c, id: 1}}, {send: {qp: c, id: 2}}]}
  signals: {host: h0, do: [{sleep: 3us}, {signal: ready}]}
  one: {host: h0, do: [{poll: {qp: c, status: SUCCESS, within: 1ms}}, {send: {qp: d, id: 5}}]}
  other: {host: h0, do: [{poll: {qp: c, status: SUCCESS, within: 1ms}}, {signal: both}]}
  gives_up: {host: h0, do: [{poll: {qp: d, within: 2us, exactly: false}}, {signal: early}]}
  last: {host: h0, do: [{wait: both}, {poll: {qp: d, count: 2}}]}
  after: {host: h1, do: [{wait: early}, {send: {qp: d, id: 9}}, {poll: {qp: d, id: 9}}]}
hosts:
  h0: {do: [{receive: {qp: d, id: 7}}]}
  h1: {do: [{receive: {qp: c, id: 10, count: 2}}, {receive: {qp: d, id: 11}}]}
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    constexpr std::int64_t kMicrosecond = 1'000'000;
    EXPECT_GT(time_of(verdict, "h1/d", 9), 2 * kMicrosecond);
    EXPECT_LT(time_of(verdict, "h1/d", 9), 8 * kMicrosecond);
    EXPECT_GT(time_of(verdict, "h0/c", 1), 3 * kMicrosecond);
    EXPECT_GT(time_of(verdict, "h0/d", 5), time_of(verdict, "h0/c", 1));
    EXPECT_LT(time_of(verdict, "h0/d", 5), 20 * kMicrosecond);
}

TEST(Connections, SayHowManyCompletionsTheirOwnQueuesTake) {
    const char* const text = R"(
connections: {c: {between: [h0, h1], ends: {h0: {completions: SIZE}}}}
hosts:
  h0: {do: [{send: {qp: c, id: 1, count: 8}}, {sleep: 1ms}]}
  h1: {do: [{receive: {qp: c, id: 10, count: 8}}]}
)";
    const auto events_with = [text](const char* size) {
        std::string said = text;
        said.replace(said.find("SIZE"), 4, size);
        return run_text(said).events;
    };
    EXPECT_TRUE(events_with("8").empty());
    const std::vector<AsyncEventSeen> events = events_with("2");
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events[0].host, "h0");
}

TEST(StoppedPrograms, GoOnWhereTheyWere) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1]}}
hosts:
  h0:
    do:
      - receive: {qp: c, id: 2}
      - sleep: 2ms
      - send: {qp: c, id: 1}
      - poll: {qp: c, id: 1, status: SUCCESS, within: 1ms}
      - poll: {qp: c, id: 2}
  h1:
    do:
      - receive: {qp: c, id: 10}
      - poll: {qp: c, id: 10, status: SUCCESS}
      - send: {qp: c, id: 11}
      - poll: {qp: c, id: 11}
faults: [{action: process_stop, node: h1, duration: 10ms, when: {at: 1ms}}]
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_LT(time_of(verdict, "h0/c", 1), 3 * kMillisecond);
    EXPECT_GT(time_of(verdict, "h1/c", 11), 11 * kMillisecond);
    EXPECT_LT(time_of(verdict, "h1/c", 11), 12 * kMillisecond);
}

TEST(StoppedPrograms, NoticeLateThatATimeHasPassed) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1]}}
hosts:
  h0: {do: [{sleep: 20ms}]}
  h1: {do: [{poll: {qp: c, within: 2ms}}]}
faults: [{action: process_stop, node: h1, duration: 10ms, when: {at: 1ms}}]
)");
    ASSERT_EQ(verdict.failures.size(), 1U) << report(verdict, {});
    EXPECT_EQ(verdict.failures[0].time_ps, 11 * kMillisecond);
}

// Programs that need a verb on the device of a stopped host wait, and nobody else.
TEST(StoppedPrograms, HoldUpNobodyElse) {
    const Verdict verdict = run_text(R"(
fabric: star:3
connections: {c: {between: [h0, h1]}, d: {between: [h0, h2]}}
hosts:
  h0:
    do:
      - receive: {qp: d, id: 1}
      - sleep: 2ms
      - reconnect: {qp: c}
      - send: {qp: c, id: 2}
      - poll: {qp: c, id: 2, status: SUCCESS}
  h1: {do: [{sleep: 12ms}, {receive: {qp: c, id: 3}}]}
  h2:
    do:
      - sleep: 3ms
      - send: {qp: d, id: 4}
      - poll: {qp: d, id: 4, status: SUCCESS}
faults: [{action: process_stop, node: h1, duration: 10ms, when: {at: 1ms}}]
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_LT(time_of(verdict, "h2/d", 4), 4 * kMillisecond);
    EXPECT_GT(time_of(verdict, "h0/c", 2), 11 * kMillisecond);
}

TEST(StoppedPrograms, MayBeSoAtTheEnd) {
    const Verdict verdict = run_text(R"(
run: {stop: 5ms}
connections: {c: {between: [h0, h1]}}
hosts:
  h0: {do: [{sleep: 2ms}, {send: {qp: c, id: 1}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c, id: 10}}, {poll: {qp: c}}]}
faults: [{action: process_stop, node: h1, duration: 10ms, when: {at: 1ms}}]
expect: {stopped: true, qp_states: {h1/c: RTS}, completions: {h0/c: [{id: 1}], h1/c: []}}
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_LE(verdict.time_ps, 5 * kMillisecond);
}

TEST(SharedReceives, MayBeThoseOfAnXrcTarget) {
    const Verdict verdict = run_text(R"(
fabric: star:3
defaults: {connection: {rnr_retries: 1}}
connections:
  x: {between: [h0, h2], type: XRC, signal_all: true, ends: {h2: {srq: s}}}
  y: {between: [h1, h2], type: XRC, ends: {h2: {srq: s}}}
hosts:
  h0: {do: [{sleep: 1us}, {send: {qp: x, id: 1, flags: [unsignaled]}}, {poll: {qp: x}}]}
  h1: {do: [{sleep: 9us}, {send: {qp: y, id: 2, count: 3}}, {poll: {qp: y, count: 3}}]}
  h2: {shared_receives: {s: {size: 4}}, do: [{receive: {srq: s, id: 5, count: 3}}]}
expect:
  completions:
    h0/x: [{id: 1}]
    h1/y: [{id: 2}, {id: 3}, {id: 4, status: RNR_RETRY_EXC_ERR}]
    h2/x: [{id: 5}]
    h2/y: [{id: 6}, {id: 7}]
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
}

TEST(SharedReceives, OfXrcTakeNothingElse) {
    const std::string errors = errors_of(R"(
connections:
  x: {between: [h0, h1], type: XRC, ends: {h0: {srq: a}, h1: {srq: s}}}
  c: {between: [h0, h1], ends: {h1: {srq: s}}}
  d: {between: [h0, h1], ends: {h1: {srq: c}}}
hosts: {h0: {shared_receives: {a: {}, c: {}}}, h1: {shared_receives: {s: {}}}}
)");
    EXPECT_EQ(errors,
              "test.yaml:3:54: h0 is the initiator of an XRC connection, which receives nothing: "
              "the srq is at the other end\n"
              "test.yaml:4:43: \"s\" of h1 takes messages of XRC: connections of other types need "
              "a queue of their own\n"
              "test.yaml:5:43: h1 has no \"c\" among its shared_receives");
}

TEST(DestroyedQueuePairs, AreMissedByTheRequestsOfTheirPeers) {
    const Verdict verdict = run_text(R"(
defaults: {connection: {timeout: 8, retries: 1}}
connections: {c: {between: [h0, h1]}, d: {between: [h0, h1]}, u: {between: [h0, h1], type: UD}}
hosts:
  h0:
    do:
      - write: {qp: c, id: 1, length: 512KiB}
      - poll: {qp: c}
      - send: {qp: d, id: 2}
      - poll: {qp: d}
      - send: {qp: u, id: 3}
      - poll: {qp: u}
  h1: {do: [{sleep: 20us}, {destroy: {qp: c}}, {destroy: {qp: d}}, {destroy: {qp: u}}]}
expect:
  completions:
    h0/c: [{id: 1, status: RETRY_EXC_ERR}]
    h0/d: [{id: 2, status: RETRY_EXC_ERR}]
    h0/u: [{id: 3}]
  qp_states: {h0/c: ERR, h0/d: ERR}
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
}

TEST(DestroyedQueuePairs, TakeNoOperations) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1], ends: {h0: {srq: s}}}}
hosts:
  h0:
    shared_receives: {s: {size: 4}}
    do:
      - destroy: {qp: c}
      - send: {qp: c}
      - poll: {qp: c, within: 1us, exactly: false}
      - destroy: {srq: s}
      - receive: {srq: s}
  h1: {do: [{sleep: 1us}, {reconnect: {qp: c}}]}
)");
    ASSERT_EQ(verdict.failures.size(), 3U) << report(verdict, {});
    EXPECT_EQ(verdict.failures[0].expected, "the queue pair of h0/c is there");
    EXPECT_EQ(verdict.failures[0].position.line, 8U);
    EXPECT_EQ(verdict.failures[1].expected, "the shared receive queue s of h0 is there");
    EXPECT_EQ(verdict.failures[2].expected, "the queue pair of h0/c is there");
    EXPECT_EQ(verdict.failures[2].position.line, 12U);
}

constexpr std::string_view kKilled = R"(
connections: {c: {between: [h0, h1], timeout: 10, retries: 1}}
hosts:
  h0:
    do:
      - sleep: 2ms
      - write: {qp: c, id: 1}
      - poll: {qp: c, status: RETRY_EXC_ERR}
  h1:
    do:
      - parallel: [[{poll: {qp: c}}], [{wait: word}]]
      - send: {qp: c, id: 2}
faults: [{name: killed, action: process_kill, node: h1, when: {at: 1ms}}]
expect: {completions: {h0/c: [{id: 1, status: RETRY_EXC_ERR}], h1/c: []}}
)";

TEST(KilledPrograms, EndWithoutAFailure) {
    const Verdict verdict = run_text(kKilled);
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_NE(verdict.explanation.find("Root: the injected fault \"killed\" (process_kill)"),
              std::string::npos)
        << verdict.explanation;
    const Verdict alive = run_text(kKilled, {"faults=[]"});
    EXPECT_FALSE(alive.passed());
}

// A host without power is like its programs, and more: the peer's failure has it as its root.
TEST(KilledHosts, EndTheirProgramsWithoutAFailure) {
    std::string text(kKilled);
    const std::string_view action = "process_kill";
    text.replace(text.find(action), action.size(), "host_kill");
    const Verdict verdict = run_text(text);
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_NE(verdict.explanation.find("Root: the injected fault \"killed\" (host_kill)"),
              std::string::npos)
        << verdict.explanation;
}

// Requests that a killed program had under way go nowhere: no retries of it are left to come.
TEST(KilledPrograms, LeaveNothingUnderWay) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1], timeout: 14, retries: 7}}
hosts:
  h0: {do: [{sleep: 1ms}]}
  h1: {do: [{write: {qp: c, id: 1}}, {poll: {qp: c}}]}
faults:
  - {action: drop, when: {from: h1, opcode: RDMA_WRITE, count: every}}
  - {action: process_kill, node: h1, when: {at: 1ms}}
expect: {never: [{host: h1, state: ERR}]}
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_EQ(verdict.time_ps, kMillisecond);
}

}  // namespace
}  // namespace scenarios
