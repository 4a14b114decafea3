// Which faults and which mistakes of programs an explanation names as the root of a failure.
#include "scenarios/engine/roots.hpp"

#include <string_view>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "scenarios/engine/explain.hpp"
#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string explanation_of(const std::string& text) {
    return run_text(text).explanation;
}

// h0 sends to h1, whose queue pair its program has moved to RESET.
std::string to_a_reset_peer(const std::string& fault) {
    return explanation_of(R"(
fabric: star:4
connections: {c: {between: [h0, h1], timeout: 8, retries: 2}}
hosts:
  h0: {do: [{sleep: 2ms}, {send: {qp: c, id: 1}}, {poll: {qp: c}}]}
  h1: {do: [{receive: {qp: c, id: 1}}, {modify: {qp: c, state: RESET}}]}
)" + fault);
}

TEST(Roots, FaultsElsewhereAreNone) {
    for (const std::string_view fault :
         {"{action: reregister, node: h2, when: {at: 1ms}}",
          "{action: link_down, link: h2-s0, when: {at: 1ms}}",
          "{action: host_kill, node: h2, when: {at: 1ms}}", "{action: sm_death, when: {at: 1ms}}",
          "{action: link_rate, link: h2-s0, rate: 1x SDR, when: {at: 1ms}}"}) {
        const std::string text = to_a_reset_peer("faults: [" + std::string(fault) + "]");
        EXPECT_THAT(text, Not(HasSubstr("injected fault"))) << fault;
        EXPECT_THAT(text, HasSubstr("Root: 0ps: the program of h1 had moved h1/c (QP 0x10101) from "
                                    "RTS to RESET."))
            << fault;
    }
}

TEST(Roots, ACutAfterThePacketsWereLostIsNone) {
    EXPECT_THAT(to_a_reset_peer("faults: [{action: link_down, link: h1-s0, when: {at: 4.9ms}}]"),
                Not(HasSubstr("injected fault")));
}

TEST(Roots, AFaultThatWasRecoveredIsNone) {
    const std::string text = explanation_of(R"(
connections: {c: {between: [h0, h1], timeout: 8, retries: 1}}
hosts:
  h0:
    do:
      - send: {qp: c, id: 1}
      - poll: {qp: c}
      - sleep: 5ms
      - send: {qp: c, id: 2}
      - poll: {qp: c}
  h1: {do: [{receive: {qp: c}}, {poll: {qp: c}}, {sleep: 2ms}, {modify: {qp: c, state: ERR}}]}
faults: [{name: early, action: corrupt, when: {qp: h0/c}}]
)");
    EXPECT_THAT(text, Not(HasSubstr("early"))) << text;
    EXPECT_THAT(text, HasSubstr("had moved h1/c (QP 0x10101) from RTS to ERR")) << text;
}

TEST(Roots, AStopOfAnIdleHostIsNoneOfRnrRetries) {
    constexpr std::string_view kText = R"(
fabric: star:4
connections: {{c: {{between: [h0, h1], rnr_retries: 1}}}}
hosts:
  h0: {{do: [{{sleep: 3ms}}, {{send: {{qp: c}}}}, {{poll: {{qp: c}}}}]}}
faults: [{{action: process_stop, node: {}, duration: {}, when: {{at: 1ms}}}}]
)";
    EXPECT_THAT(explanation_of(fmt::format(kText, "h3", "1s")), Not(HasSubstr("injected fault")));
    EXPECT_THAT(explanation_of(fmt::format(kText, "h1", "1us")), Not(HasSubstr("injected fault")));
    EXPECT_THAT(explanation_of(fmt::format(kText, "h1", "1s")),
                HasSubstr("Root: the injected fault \"fault1\" (process_stop) fired at 1.000ms: on "
                          "the programs of h1, once."));
}

TEST(Roots, PacketsOfOtherQueuePairsAreNone) {
    const std::string text = explanation_of(R"(
connections:
  c: {between: [h0, h1], timeout: 8, retries: 1}
  d: {between: [h0, h1], timeout: 8, retries: 1}
hosts:
  h0: {do: [{send: {qp: c}}, {send: {qp: d}}, {poll: {qp: c}}, {poll: {qp: d}}]}
  h1: {do: [{receive: {qp: c}}, {modify: {qp: d, state: ERR}}]}
faults: [{name: other, action: drop, when: {qp: h0/c}}]
)");
    EXPECT_THAT(text, Not(HasSubstr("dropped a frame"))) << text;
    EXPECT_THAT(text, HasSubstr("had moved h1/d (QP 0x10102) from RTS to ERR")) << text;
}

TEST(Roots, AFaultThatStoppedThePeerIsOne) {
    const std::string text = explanation_of(R"(
connections: {c: {between: [h0, h1], timeout: 8, retries: 2}}
hosts: {h0: {do: [{write: {qp: c, length: 1MiB}}, {poll: {qp: c}}]}}
faults: [{name: dead, action: qp_error, qp: h1/c, node: h1, when: {at: 20us}}]
)");
    EXPECT_THAT(text, HasSubstr("h1 discarded a packet for QP 0x10101: queue pair not ready"));
    EXPECT_THAT(text,
                HasSubstr("Root: the injected fault \"dead\" (qp_error) fired at 20.000us: on "
                          "h1 QP 0x10101, once."));
}

// Faults of programs name queue pairs by their order: the firing says which one it was.
TEST(Roots, AFaultThatAPacketOfThePeerSetOffIsOne) {
    std::vector<Record> records;
    const auto add = [&records](std::string node, std::string_view name,
                                std::vector<Record::Field> fields) {
        records.push_back({.time_ps = 1'000'000 * static_cast<std::int64_t>(records.size()),
                           .node = std::move(node),
                           .name = name,
                           .fields = std::move(fields)});
    };
    add("h0", "node", {{"label", "h0", 0}, {"host", "h0", 0}});
    add("h1", "node", {{"label", "h1", 0}, {"host", "h1", 0}});
    add("h0", "queue_pair", {{"qpn", "", 0x10001}});
    add("h1", "queue_pair", {{"qpn", "", 0x10101}});
    add("h1", "fault",
        {{"fault", "", 1},
         {"action", "qp_error", 0},
         {"name", "dead", 0},
         {"target", "queue pair", 0},
         {"qpn", "", 0}});
    add("h0", "fault_fired",
        {{"fault", "", 1},
         {"action", "qp_error", 0},
         {"flow", "", 0x10001},
         {"operation", "SEND_ONLY", 0},
         {"relative_psn", "", 1},
         {"attempt", "", 1},
         {"to_flow", "", 0x10101},
         {"target", "", 1},
         {"target_qpn", "", 0x10101}});
    add("h1", "qp_state",
        {{"qpn", "", 0x10101},
         {"from", "RTS", 0},
         {"to", "ERR", 0},
         {"trigger", "qp error", 0},
         {"cause", "internal error", 0}});
    const std::string named = explain(records, {}).value_or("");
    EXPECT_THAT(named,
                HasSubstr("Root: the injected fault \"dead\" (qp_error) fired at 5.000us: on "
                          "h1 QP 0x10101"));
    // Without a name there is no record of the fault itself.
    std::erase_if(records, [](const Record& record) { return record.name == "fault"; });
    const std::string unnamed = explain(records, {}).value_or("");
    EXPECT_THAT(unnamed, HasSubstr("Root: the injected fault 1 (qp_error) fired at 5.000us: on h1 "
                                   "QP 0x10101"));
}

TEST(Roots, AReceiveThatAFaultHidIsOneOfRnrRetries) {
    const std::string text = explanation_of(R"(
connections: {c: {between: [h0, h1], rnr_retries: 1}}
hosts:
  h0: {do: [{sleep: 1us}, {send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c}}]}
faults: [{name: empty, action: no_receive, when: {to: h1, count: every}}]
)");
    EXPECT_THAT(text, HasSubstr("h1 answered 2 times that it was not ready: a fault hid its "
                                "receives."));
    EXPECT_THAT(text, HasSubstr("Root: the injected fault \"empty\" (no_receive) fired at "));
}

TEST(Roots, AReceiveThatAFaultHidFromADatagramIsNamed) {
    EXPECT_THAT(explanation_of(R"(
connections: {c: {between: [h0, h1], type: UD}}
hosts:
  h0: {do: [{sleep: 1us}, {send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c, length: 128}}, {poll: {qp: c, within: 1ms}}]}
faults: [{name: empty, action: no_receive, when: {to: h1}}]
)"),
                HasSubstr("the sender is not told: the injected fault \"empty\" (no_receive) hid "
                          "the receives."));
}

// No request fails: the order in which things happened is what there is to say.
TEST(FiredFaults, TellWhichMessageOvertookARead) {
    const std::string text = explanation_of(R"(
connections: {c: {between: [h0, h1], timeout: 8}}
hosts:
  h0:
    do:
      - read: {qp: c, id: 1, at: 0, to: 512, length: 8}
      - write: {qp: c, id: 2, at: 64, to: 512, length: 8}
      - poll: {qp: c, count: 2, status: SUCCESS}
faults: [{name: lost, action: drop, when: {from: h1, opcode: RDMA_READ_RESPONSE}}]
expect: {memory: [{host: h0, at: 0, word: 77}]}
)");
    EXPECT_THAT(text, HasSubstr("the injected fault \"lost\" (drop) fired at h1, "
                                "RDMA_READ_RESPONSE_ONLY, PSN 1 of its queue pair, transmission 1, "
                                "which carried data that an RDMA READ had read."));
    EXPECT_THAT(text, HasSubstr("h1 carried out RDMA WRITE of 8 bytes of h0/c (QP 0x10001)."));
    EXPECT_THAT(text, HasSubstr("h0/c (QP 0x10001) sent RDMA_READ_REQUEST, PSN 1, again."));
    EXPECT_THAT(text, HasSubstr("h1 read its memory once more for PSN 1, after it had carried out "
                                "RDMA WRITE of 8 bytes of the same queue pair."));
}

TEST(Roots, AnOverrunOfThePeersCompletionQueueIsNamed) {
    EXPECT_THAT(explanation_of(R"(
connections: {c: {between: [h0, h1], timeout: 8, retries: 2, ends: {h1: {cq: q}}}}
hosts:
  h0: {do: [{send: {qp: c, count: 16}}, {poll: {qp: c, count: 16}}]}
  h1: {completion_queues: {q: {size: 4}}, do: [{receive: {qp: c, count: 16}}]}
)"),
                HasSubstr("h1/c (QP 0x10101) had gone to ERR: CQ_ERR once"));
}

TEST(Roots, PsnsThatDoNotAgreeAreNamed) {
    for (const std::string_view psn : {"90", "200"}) {
        const std::string text = explanation_of(fmt::format(
            R"(
connections: {{c: {{between: [h0, h1], timeout: 8, retries: 2, ends: {{h1: {{receive_psn: {}}}}}}}}}
hosts: {{h0: {{do: [{{write: {{qp: c}}}}, {{poll: {{qp: c}}}}]}}}}
)",
            psn));
        EXPECT_THAT(text, HasSubstr(fmt::format("begins with PSN 100 (sq_psn), and h1/c (QP "
                                                "0x10101) expects PSN {} (rq_psn).",
                                                psn)));
    }
}

TEST(Roots, PacketsThatAreSentAgainTogetherAreOneLine) {
    EXPECT_THAT(explanation_of(R"(
connections: {c: {between: [h0, h1], mtu: 1024}}
hosts: {h0: {do: [{write: {qp: c, length: 8KiB}}, {poll: {qp: c}}]}}
faults: [{name: lost, action: drop, when: {qp: h0/c, psn: 3}}]
expect: {memory: [{host: h1, at: 0, word: 77}]}
)"),
                AllOf(HasSubstr("sent PSN 3 to 8 again."), Not(HasSubstr("PSN 4, again"))));
}

TEST(Roots, ALidWithoutARouteIsNamed) {
    EXPECT_THAT(explanation_of(R"(
connections: {c: {between: [h0, h1], timeout: 8, retries: 2, ends: {h0: {lid: 77}}}}
hosts: {h0: {do: [{write: {qp: c}}, {poll: {qp: c}}]}}
)"),
                HasSubstr("s0 dropped a frame for LID 77: no route leads there (no_route)."));
}

TEST(Roots, WhatWasHitIsNamedAndWhatSetItOff) {
    EXPECT_THAT(explanation_of(R"(
connections: {c: {between: [h0, h1], timeout: 8, retries: 1}}
hosts: {h0: {do: [{write: {qp: c, length: 64KiB}}, {poll: {qp: c}}]}}
faults: [{name: dead, action: host_kill, node: h1, when: {on: packet, qp: h0/c, psn: 10}}]
)"),
                HasSubstr("on h1, set off at h0 by RDMA_WRITE_MIDDLE, PSN 10"));
}

TEST(Roots, RoutesThatVanishWithASwitchAreNoRootsOfTheirOwn) {
    const std::string text = explanation_of(R"(
fabric: fat-tree2:2x1x1
connections: {c: {between: [h0, h1], timeout: 8, retries: 1}}
hosts: {h0: {do: [{sleep: 1us}, {write: {qp: c, length: 64KiB}}, {poll: {qp: c}}]}}
faults: [{name: dead, action: switch_death, node: spine0, when: {on: packet, qp: h0/c, psn: 10}}]
)");
    EXPECT_THAT(text, HasSubstr("Root: the injected fault \"dead\" (switch_death)"));
    EXPECT_THAT(text, Not(HasSubstr("no_route"))) << text;
}

TEST(Roots, PacketsThatWereSentBeforeAnErrorAreCounted) {
    const std::string text = explanation_of(R"(
connections: {c: {between: [h0, h1]}}
hosts:
  h0: {do: [{write: {qp: c, length: 512KiB}}, {sleep: 20us}, {deregister: {}}, {poll: {qp: c}}]}
)");
    EXPECT_THAT(text, HasSubstr("packets of it had been sent when h0 found that."));
    EXPECT_THAT(text, HasSubstr("20.000us: h0 had called ibv_dereg_mr."));
    EXPECT_THAT(text, Not(HasSubstr("Nothing of it was sent")));
}

TEST(Roots, ACallThatAFaultRefusedIsExplained) {
    const std::string text = explanation_of(R"(
connections: {c: {between: [h0, h1]}}
hosts: {h0: {do: [{modify: {qp: c, state: SQD}}]}}
faults: [{name: enomem, action: call, errno: ENOMEM, when: {host: h0, call: ibv_modify_qp}}]
)");
    EXPECT_THAT(text, HasSubstr("ibv_modify_qp of h0 answered ENOMEM."));
    EXPECT_THAT(text, HasSubstr("Root: the injected fault \"enomem\" (call)"));
}

TEST(Roots, TheFailureOfTheExpectedEndIsExplained) {
    EXPECT_THAT(explanation_of(R"(
fabric: star:4
connections:
  a: {between: [h2, h3], timeout: 6, retries: 1, ends: {h2: {lid: 77}}}
  b: {between: [h0, h1], timeout: 8, retries: 1}
hosts:
  h2: {do: [{send: {qp: a}}, {poll: {qp: a, status: RETRY_EXC_ERR}}]}
  h0: {do: [{sleep: 50us}, {send: {qp: b}}, {poll: {qp: b}}]}
  h1: {do: [{modify: {qp: b, state: ERR}}]}
expect: {completions: {h0/b: [{}]}}
)"),
                HasSubstr("request 0 of h0/b (QP 0x10001) completed with RETRY_EXC_ERR"));
}

TEST(Roots, PacketsBehindAGapOfUcAreCounted) {
    const std::string text = explanation_of(R"(
connections: {u: {between: [h0, h1], type: UC}}
hosts:
  h0: {do: [{send: {qp: u, length: 8KiB}}, {poll: {qp: u}}]}
  h1: {do: [{receive: {qp: u, length: 8KiB}}, {poll: {qp: u, within: 1ms}}]}
faults: [{name: gap, action: drop, when: {qp: h0/u, psn: 3}}]
)");
    EXPECT_THAT(text, HasSubstr("5 packets without acknowledgment of h0/u (QP 0x10001) for QP "
                                "0x10101 lost at h1"));
    EXPECT_THAT(text, HasSubstr("the injected fault \"gap\" (drop)"));
}

TEST(Roots, CorruptedDatagramsNameTheFault) {
    EXPECT_THAT(explanation_of(R"(
connections: {u: {between: [h0, h1], type: UD}}
hosts:
  h0: {do: [{send: {qp: u}}, {poll: {qp: u}}]}
  h1: {do: [{receive: {qp: u, length: 104}}]}
faults: [{name: bad, action: corrupt, when: {qp: h0/u}}]
)"),
                HasSubstr("invariant CRC wrong, by the injected fault \"bad\" (corrupt)"));
}

TEST(Roots, RequestsThatAnOverrunSwallowedHaveTheirIds) {
    const std::string text = explanation_of(R"(
connections: {c: {between: [h0, h1], ends: {h0: {cq: q}}}}
hosts:
  h0: {completion_queues: {q: {size: 4}}, do: [{write: {qp: c, id: 1, count: 9}}, {sleep: 1ms}]}
)");
    EXPECT_THAT(text,
                HasSubstr("request 5 (id 6) of h0/c (QP 0x10001) completed with WR_FLUSH_ERR"));
    EXPECT_THAT(text, HasSubstr("The program did not get that completion"));
}

Record packet_sent(std::int64_t time_ps, const std::string& node, std::uint64_t qpn,
                   std::uint64_t dest_qpn, std::uint64_t opcode, std::uint64_t syndrome,
                   bool again) {
    const auto number = [](const char* name, std::uint64_t value) {
        return Record::Field{name, std::to_string(value), value};
    };
    return {time_ps,
            node,
            "packet",
            "packet_sent",
            {number("qpn", qpn),
             number("dest_qpn", dest_qpn),
             number("bth_opcode", opcode),
             {"opcode", opcode == 0x11 ? "ACKNOWLEDGE" : "SEND_ONLY", 0},
             number("psn", 100),
             number("syndrome", syndrome),
             number("retransmission", again ? 1 : 0)}};
}

TEST(Recovered, DoesNotCallRnrRetriesLosses) {
    const std::vector<Record> records = {packet_sent(1, "h0", 5, 7, 0x04, 0, false),
                                         packet_sent(2, "h1", 7, 5, 0x11, 0x21, false),
                                         packet_sent(3, "h0", 5, 7, 0x04, 0, true)};
    EXPECT_EQ(recovered(records),
              "    1 packet was sent again after RNR NAKs: no receive was posted.\n");
    const std::vector<Record> lost = {packet_sent(1, "h0", 5, 7, 0x04, 0, false),
                                      packet_sent(3, "h0", 5, 7, 0x04, 0, true)};
    EXPECT_EQ(recovered(lost),
              "    1 packet was sent again, and no request completed after that.\n");
}

}  // namespace
}  // namespace scenarios
