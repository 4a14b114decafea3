// Operations of rdma_cm in scenarios: what they answer, what may be expected of them, what is
// refused before anything runs. The order of events is that of rdma_get_cm_event(3) and rdma_cm(7).
#include <algorithm>
#include <cerrno>

#include "simverbs/model/cm_codes.hpp"
#include "simverbs/model/rdma_cm_events.hpp"

#include "scenarios/engine/cm_words.hpp"
#include "scenarios/engine/witness.hpp"
#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

// h1 connects to h0 and sends it a message.
constexpr const char* kConnected = R"(
connections: {c: {between: [h0, h1], cm: true}}
hosts:
  h0:
    do:
      - listen: {}
      - accept: {qp: c, private_data: welcome}
      - receive: {qp: c, id: 1}
      - poll: {qp: c, id: 1, status: SUCCESS}
  h1:
    do:
      - sleep: 10us
      - connect: {qp: c, private_data: hello, answer: welcome}
      - send: {qp: c, id: 2}
      - poll: {qp: c, id: 2, status: SUCCESS}
)";

std::vector<std::string> names_of(const Verdict& verdict, std::string_view host) {
    std::vector<std::string> names;
    for (const CmEventSeen& seen : verdict.cm_events) {
        if (seen.host == host) {
            names.emplace_back(to_string(static_cast<simverbs::RdmaEventType>(seen.event)));
        }
    }
    return names;
}

void expect_passed(const Verdict& verdict) {
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_TRUE(verdict.deterministic) << verdict.mark;
}

TEST(ByCm, ConnectsTwoPrograms) {
    const Verdict verdict = run_text(kConnected);
    expect_passed(verdict);
    EXPECT_EQ(names_of(verdict, "h0"),
              (std::vector<std::string>{"CONNECT_REQUEST", "ESTABLISHED"}));
    EXPECT_EQ(names_of(verdict, "h1"),
              (std::vector<std::string>{"ADDR_RESOLVED", "ROUTE_RESOLVED", "ESTABLISHED"}));
}

TEST(ByCm, RepeatsItself) {
    const Verdict first = run_text(kConnected);
    const Verdict second = run_text(kConnected);
    EXPECT_NE(first.digest, 0U);
    EXPECT_EQ(first.digest, second.digest);
    EXPECT_NE(first.digest, run_text(kConnected, {"hosts.h1.do.0.sleep=20us"}).digest);
}

// An end that connects again has a new id, and its queue pair begins at RESET.
TEST(ByCm, ConnectsAgain) {
    expect_passed(run_text(R"(
connections: {c: {between: [h0, h1], cm: true}}
hosts:
  h0:
    do:
      - listen: {}
      - accept: {qp: c}
      - await_cm: {event: DISCONNECTED}
      - disconnect: {qp: c}
      - accept: {qp: c}
      - await_cm: {event: DISCONNECTED, count: 2}
      - disconnect: {qp: c}
  h1:
    do:
      - sleep: 10us
      - loop:
          times: 2
          do: [{connect: {qp: c}}, {disconnect: {qp: c}}, {sleep: 10s}]
expect: {cm_events: {h0: [CONNECT_REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT,
                          CONNECT_REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT]}}
)"));
}

// The requests of two connections reach one listener: each is accepted by its name.
TEST(ByCm, AcceptsTheRequestOfItsPeer) {
    expect_passed(run_text(R"(
fabric: star:3
connections: {c: {between: [h0, h1], cm: true}, d: {between: [h0, h2], cm: true}}
hosts:
  h0: {do: [{listen: {}}, {sleep: 1ms}, {accept: {qp: d}}, {accept: {qp: c}}]}
  h1: {do: [{sleep: 10us}, {connect: {qp: c}}]}
  h2: {do: [{sleep: 20us}, {connect: {qp: d}}]}
expect:
  cm_events: {h0: [{event: CONNECT_REQUEST, of: c}, {event: CONNECT_REQUEST, of: d},
                   {event: ESTABLISHED, of: d}, {event: ESTABLISHED, of: c}]}
  qp_states: {h0/c: RTS, h0/d: RTS, h1/c: RTS, h2/d: RTS}
)"));
}

TEST(ByCm, WorksOnEthernet) {
    const Verdict verdict = run_text(kConnected, {"fabric=eth-pair"});
    expect_passed(verdict);
    EXPECT_EQ(names_of(verdict, "h1"),
              (std::vector<std::string>{"ADDR_RESOLVED", "ROUTE_RESOLVED", "ESTABLISHED"}));
}

TEST(ByCm, WorksForUnreliableConnections) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1], type: UC, cm: true}}
hosts:
  h0:
    do:
      - listen: {type: UC}
      - accept: {qp: c}
      - receive: {qp: c, id: 1}
      - poll: {qp: c, id: 1, status: SUCCESS}
  h1:
    do: [{sleep: 10us}, {connect: {qp: c}}, {sleep: 1ms}, {send: {qp: c, id: 2}}]
)");
    expect_passed(verdict);
}

constexpr const char* kRejected = R"(
connections: {c: {between: [h0, h1], cm: true}}
hosts:
  h0: {do: [{listen: {}}, {reject: {qp: c, reason: 28}}]}
  h1: {do: [{sleep: 10us}, {connect: {qp: c, wait: false}}]}
)";

// Packets are as many and as long for each reason.
TEST(ByCm, DigestsKnowItsEvents) {
    const Verdict consumer = run_text(kRejected);
    const Verdict vendor = run_text(kRejected, {"hosts.h0.do.1.reject.reason=35"});
    expect_passed(consumer);
    expect_passed(vendor);
    EXPECT_EQ(consumer.cm_events.back().status, 28);
    EXPECT_EQ(vendor.cm_events.back().status, 35);
    EXPECT_NE(consumer.digest, vendor.digest);
}

constexpr std::int64_t kMillisecondPs = 1'000'000'000;  // ps

// A stale connection ends TIMEWAIT after that.
std::int64_t time_of_rejection(const Verdict& verdict) {
    const auto found =
        std::ranges::find(verdict.cm_events, static_cast<int>(simverbs::RdmaEventType::kRejected),
                          &CmEventSeen::event);
    return found == verdict.cm_events.end() ? -1 : found->time_ps;
}

// Statuses of REJECTED are the reasons of the REJ. A side that gives up says 4 (timeout), and
// answers nothing: the fault refuses it.
TEST(ByCm, IsRejectedForEachReason) {
    for (const char* const fabric : {"pair", "eth-pair"}) {
        for (const auto& row : simverbs::kRejectReasonNames) {
            const int reason = static_cast<int>(row.code);
            const std::string number = std::to_string(reason);
            const Verdict verdict = run_text(
                R"(
connections: {c: {between: [h0, h1], cm: true}}
hosts:
  h0: {do: [{listen: {}}]}
  h1: {do: [{sleep: 10us}, {connect: {qp: c, event: REJECTED}}]}
)",
                {std::string("fabric=") + fabric, "hosts.h1.do.1.connect.status=" + number,
                 "faults=[{action: cm_reject, when: {opcode: CM_REQ}, reason: " + number + "}]"});
            SCOPED_TRACE(std::string(fabric) + ", " + number + ": " + std::string(row.name));
            if (row.code == simverbs::RejectReason::kTimeout) {
                EXPECT_NE(verdict.error.find("reason is 4 (timeout)"), std::string::npos)
                    << verdict.error;
                continue;
            }
            expect_passed(verdict);
            EXPECT_EQ(names_of(verdict, "h0"), std::vector<std::string>());
            EXPECT_LT(time_of_rejection(verdict), kMillisecondPs) << "the answer comes at once";
        }
    }
}

TEST(ByCm, FailuresAreExplained) {
    const Verdict verdict = run_text(
        kConnected, {"faults=[{name: lost, action: drop, when: {opcode: CM_REQ, count: every}}]"});
    EXPECT_FALSE(verdict.passed());
    EXPECT_NE(verdict.explanation.find("rdma_cm told h1: UNREACHABLE"), std::string::npos)
        << verdict.explanation;
    EXPECT_NE(verdict.explanation.find("\"lost\""), std::string::npos) << verdict.explanation;
}

// A refused call ends a connect without an event: await_cm tells it.
TEST(ByCm, CallsThatAreRefusedAreTold) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1], cm: true}}
hosts:
  h1:
    do:
      - connect: {qp: c, wait: false}
      - modify: {qp: c, state: ERR}
      - await_cm: {event: ESTABLISHED, qp: c}
)");
    ASSERT_EQ(verdict.failures.size(), 1U) << report(verdict, {});
    EXPECT_EQ(verdict.failures[0].happened, "rdma_create_qp answered EINVAL");
}

// The events of a host whose programs are stopped wait.
TEST(ByCm, StoppedProgramsAnswerLate) {
    constexpr std::int64_t kStopped = 11'000'000'000;  // ps
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1], cm: true}}
hosts:
  h0: {do: [{listen: {}}, {accept: {qp: c}}]}
  h1: {do: [{sleep: 2ms}, {connect: {qp: c}}]}
faults: [{action: process_stop, node: h0, duration: 10ms, when: {at: 1ms}}]
)");
    expect_passed(verdict);
    EXPECT_EQ(names_of(verdict, "h0"),
              (std::vector<std::string>{"CONNECT_REQUEST", "ESTABLISHED"}));
    EXPECT_GE(verdict.cm_events.back().time_ps, kStopped);
}

struct Wrong {
    const char* name;
    const char* setting;
    const char* says;
};
constexpr Wrong kWrong[] = {
    {"another_event", "hosts.h1.do.1.connect.event=REJECTED", "ESTABLISHED of c and \"welcome\""},
    {"another_status", "hosts.h1.do.1.connect.status=8", "ESTABLISHED with status 8"},
    {"another_answer", "hosts.h1.do.1.connect.answer=no", "and \"no\""},
    {"another_port", "hosts.h1.do.1.connect.port=1", "REJECTED of c with status 8"},
    {"no_time", "hosts.h1.do.1.connect.within=1ns", "no answer came"},
    {"no_address", "hosts.h1.do.1.connect.to=192.0.2.1", "rdma_resolve_addr"},
    {"never", "expect.never=[{cm_event: ESTABLISHED}]", "never"},
    {"list", "expect.cm_events={h1: [ADDR_RESOLVED]}", "and no further one"},
    {"longer_list", "expect.cm_events={h0: [CONNECT_REQUEST, ESTABLISHED, DISCONNECTED]}",
     "no further event"},
    {"private_data", "expect.cm_events={h0: [{event: CONNECT_REQUEST, private_data: bye}]}",
     "CONNECT_REQUEST and \"bye\""},
};

class WrongExpectation : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongExpectation, IsToldWithWhatCame) {
    const Verdict verdict = run_text(kConnected, {GetParam().setting});
    EXPECT_EQ(verdict.error, "");
    ASSERT_FALSE(verdict.failures.empty());
    const std::string text = report(verdict, {});
    EXPECT_NE(text.find(GetParam().says), std::string::npos) << text;
}
INSTANTIATE_TEST_SUITE_P(Of, WrongExpectation, ::testing::ValuesIn(kWrong),
                         [](const auto& row) { return std::string(row.param.name); });

std::string with_operation(const char* connection, const char* operation) {
    return std::string("connections: {c: {between: [h0, h1], ") + connection +
           "}}\nhosts: {h0: {do: [" + operation + "]}}\n";
}

TEST(ByCm, RefusesWhatDoesNotFitTogether) {
    struct Row {
        const char* connection;
        const char* operation;
        const char* says;
    };
    constexpr Row kRows[] = {
        {"type: RC", "accept: {qp: c}", "accept: the connection needs \"cm: true\""},
        {"type: RC", "connect: {qp: c, to: 127.77.0.1}", "to: of a connection with \"cm: true\""},
        {"type: RC", "destroy: {id: c}", "an id is one of a connection with \"cm: true\""},
        {"cm: true", "reconnect: {qp: c}", "ends of rdma_cm connect anew"},
        {"cm: true", "join: {qp: c, group: 239.1.1.1}", "connections with \"type: UD\""},
        {"cm: true", "connect: {qp: c, to: h1}", "\"h1\": expected an IP address"},
        {"cm: true, psn: 5", "connect: {qp: c}", "psn: the communication manager decides it"},
        {"cm: true, type: XRC", "connect: {qp: c}", "a connection by rdma_cm is RC, UC or UD"},
        {"cm: true", "await_cm: {event: ESTABLISHD}", "did you mean \"ESTABLISHED\"?"},
        {"cm: true", "connect: {qp: d}", "unknown connection \"d\""},
    };
    for (const Row& row : kRows) {
        const std::string errors = errors_of(with_operation(row.connection, row.operation));
        EXPECT_NE(errors.find(row.says), std::string::npos) << row.operation << "\n" << errors;
    }
}

// Each message has room of its own; rdma_cm takes 36 bytes of a request. rdma_connect(3),
// rdma_accept(3): 56, 196, 180 and 136 bytes.
TEST(ByCm, PrivateDataFillsItsMessage) {
    struct Row {
        const char* type;
        const char* operation;
        std::size_t room;
    };
    constexpr Row kRows[] = {{"RC", "connect", 56},  {"RC", "accept", 196}, {"RC", "reject", 148},
                             {"UD", "connect", 180}, {"UD", "accept", 136}, {"UD", "reject", 136}};
    for (const Row& row : kRows) {
        const auto with_bytes = [&row](std::size_t bytes) {
            return with_operation((std::string("cm: true, type: ") + row.type).c_str(),
                                  (std::string(row.operation) +
                                   ": {qp: c, private_data: " + std::string(bytes, 'x') + "}")
                                      .c_str());
        };
        SCOPED_TRACE(std::string(row.type) + " " + row.operation);
        EXPECT_EQ(errors_of(with_bytes(row.room)), "");
        EXPECT_NE(errors_of(with_bytes(row.room + 1))
                      .find("expected " + std::to_string(row.room) + " at most"),
                  std::string::npos);
    }
}

// The longest answers arrive whole.
TEST(ByCm, LongPrivateDataArrives) {
    const std::string request(56, 'q');
    const std::string reply(196, 'p');
    expect_passed(run_text(kConnected, {"hosts.h1.do.1.connect.private_data=" + request,
                                        "hosts.h1.do.1.connect.answer=" + reply,
                                        "hosts.h0.do.1.accept.private_data=" + reply}));
}

// Those of processes come from the trace of their world.
TEST(ByCm, EventsOfProcessesAreThoseOfTheirTrace) {
    const auto scenario = parse("hosts: {h1: {run: rping}}", "test.yaml", {});
    ASSERT_TRUE(scenario) << scenario.error();
    Witness witness(*scenario);
    constexpr std::int64_t kTimedOut = -ETIMEDOUT;
    witness.see({1'000'000,
                 "h1",
                 "call",
                 "rdma_cm_event",
                 {{"event", "UNREACHABLE",
                   static_cast<std::uint64_t>(simverbs::RdmaEventType::kUnreachable)},
                  {"id", "0", 0},
                  {"status", "-110", static_cast<std::uint64_t>(kTimedOut)}}});
    ASSERT_EQ(witness.cm_events().size(), 1U);
    EXPECT_EQ(describe(witness.cm_events()[0]), "UNREACHABLE with status ETIMEDOUT at 1.000us");
}

}  // namespace
}  // namespace scenarios
