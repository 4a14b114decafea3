#include "tutorials/lab/judge.hpp"

#include <sstream>

#include <gmock/gmock.h>

namespace simverbs::lab {
namespace {

using testing::HasSubstr;

// Each line: a record without its number.
Performance performance_of(std::initializer_list<std::string_view> records) {
    std::string text = R"({"schema":"simverbs-trace","version":1,"time_unit":"ps","members":[]})"
                       "\n"
                       R"({"time":0,"seq":0,"node":0,"category":"object","name":"node","fields":)"
                       R"({"label":"h0","host":"h0","kind":"hca","ports":1}})"
                       "\n"
                       R"({"time":0,"seq":1,"node":1,"category":"object","name":"node","fields":)"
                       R"({"label":"h1","host":"h1","kind":"hca","ports":1}})"
                       "\n";
    int seq = 2;
    for (const std::string_view record : records) {
        text += "{\"seq\":" + std::to_string(seq++) + "," + std::string(record) + "}\n";
    }
    Performance performance;
    std::istringstream in(text);
    auto trace = viz::read_trace(in, "test");
    EXPECT_TRUE(trace.has_value()) << trace.error();
    performance.trace = std::move(*trace);
    performance.run = viz::read_run(performance.trace);
    return performance;
}

std::string record(int time, int node, std::string_view category, std::string_view name,
                   std::string_view fields) {
    return "\"time\":" + std::to_string(time) + ",\"node\":" + std::to_string(node) +
           ",\"category\":\"" + std::string(category) + "\",\"name\":\"" + std::string(name) +
           "\",\"fields\":{" + std::string(fields) + "}";
}
const std::string kReceiveAtH0 =
    record(10, 0, "call", "posted", R"("qpn":5,"send":false,"posted":3)");
const std::string kRtrOfH0 =
    record(20, 0, "state", "qp_state", R"("qpn":5,"from":"INIT","to":"RTR")");
const std::string kRtrOfH1 =
    record(30, 1, "state", "qp_state", R"("qpn":5,"from":"INIT","to":"RTR")");
const std::string kFailure =
    record(5'000'030, 1, "completion", "completion",
           R"("cq":1,"qpn":5,"index":0,"status":"RETRY_EXC_ERR","opcode":"SEND")");

Finding judged(const std::string& demand, const Performance& performance) {
    fabric::yaml::Errors errors("rubric.yaml");
    const auto rubric =
        read_rubric("title: t\nrules: [{name: r, asks: a, say: s, " + demand + "}]", errors);
    EXPECT_TRUE(rubric.has_value()) << errors.text();
    return rubric ? judge(rubric->rules[0].demand, performance) : Finding{};
}

std::vector<Finding> findings_of(const std::string& rules, const Performance& performance) {
    fabric::yaml::Errors errors("rubric.yaml");
    const auto rubric = read_rubric("title: t\nrules:\n" + rules, errors);
    EXPECT_TRUE(rubric.has_value()) << errors.text();
    return judge(*rubric, performance);
}

// Attribute 0x15 is DREQ of class 7, and PortInfo of class 1.
TEST(Judge, KnowsMessagesOfTheCommunicationManager) {
    const auto datagram = [](int node, int management_class, int attribute) {
        return record(10, node, "packet", "datagram_sent",
                      R"("class":)" + std::to_string(management_class) + R"(,"attribute":)" +
                          std::to_string(attribute));
    };
    const Performance performance =
        performance_of({datagram(1, 7, 0x10), datagram(0, 7, 0x15), datagram(0, 1, 0x15)});
    const auto holds = [&performance](const std::string& demand) {
        return judged(demand, performance).holds;
    };
    EXPECT_TRUE(holds("count: {of: {cm: DREQ}, exactly: 1}"));
    EXPECT_TRUE(holds("count: {of: {cm: REQ, host: h1}, exactly: 1}"));
    EXPECT_TRUE(holds("count: {of: {cm: [REQ, DREQ]}, exactly: 2}"));
    EXPECT_TRUE(holds("count: {of: {cm: '*'}, exactly: 2}"));
    EXPECT_TRUE(holds("never: {cm: REP}"));
    EXPECT_FALSE(holds("never: {cm: REQ}"));
}

TEST(Judge, SaysInWordsWhatWasNotPrinted) {
    const auto seen = [](const std::string& expression) {
        return judged("output: " + expression, performance_of({})).seen;
    };
    EXPECT_EQ(seen(R"("line 0[^\\n]*: Posted,\\n[^]*line 1[^\\n]*: done\\.\\n")"),
              "nothing printed reads 'line 0...: Posted,...line 1...: done.'");
    EXPECT_EQ(seen(R"re("port 1: (PORT_)?(active|ACTIVE)")re"),
              "nothing printed reads 'port 1: PORT_active or ACTIVE'");
    EXPECT_EQ(seen(R"("LID 1\\b[^]*after [1-9]?[0-9]?[0-9] ms")"),
              "nothing printed reads 'LID 1...after # ms'");
}

TEST(Judge, SaysWhatWasPrintedInstead) {
    const auto seen = [](const std::string& expression, const std::string& printed) {
        Performance performance = performance_of({});
        performance.output = printed;
        return judged("output: " + expression, performance).seen;
    };
    const std::string two = R"("1 key: LOC_PROT_ERR, as named\\n[^]*2 link: RETRY_EXC_ERR, as")";
    EXPECT_EQ(seen(two, " 1 key: LOC_PROT_ERR, as named\n 2 link: RETRY_EXC_ERR, NOT\n"),
              "nothing printed reads '2 link: RETRY_EXC_ERR, as', but there is "
              "' 2 link: RETRY_EXC_ERR, NOT'");
    EXPECT_EQ(seen(R"("visits 6,")", "counter 6, visits 3, lock 0\n"),
              "nothing printed reads 'visits 6,', but there is 'counter 6, visits 3, lock 0'");
    EXPECT_EQ(seen(two, "something else\n"),
              "nothing printed reads '1 key: LOC_PROT_ERR, as named...2 link: RETRY_EXC_ERR, as'");
    EXPECT_EQ(seen(R"("sends REQ\\n[^]*sends REQ")", "h0 sends REQ\n"),
              "nothing printed reads 'sends REQ...sends REQ'");
    EXPECT_THAT(seen(R"("sends DREQ\\n(sends DREQ\\n)*h1 sends DREP")", "sends DREQ\n"),
                HasSubstr("h1 sends DREP', but there is 'sends DREQ'"));
}

TEST(Judge, OrderIsOfEachHost) {
    const std::string order = "order: {first: {posted: receive}, before: {state: RTR}, each: host}";
    EXPECT_TRUE(judged(order, performance_of({kReceiveAtH0, kRtrOfH0})).holds);
    EXPECT_FALSE(judged(order, performance_of({kRtrOfH0, kReceiveAtH0})).holds);
    const Finding other = judged(order, performance_of({kReceiveAtH0, kRtrOfH0, kRtrOfH1}));
    EXPECT_FALSE(other.holds);
    EXPECT_THAT(other.seen, HasSubstr("h1 QP 0x5"));
    const Finding unfinished = judged(order, performance_of({kReceiveAtH0}));
    EXPECT_FALSE(unfinished.holds) << "it never came to RTR";
    EXPECT_TRUE(unfinished.open) << "the receive is there: nothing was done wrong so far";
    EXPECT_FALSE(judged(order, performance_of({})).open);
}

TEST(Judge, CountsRequestsAndNotDoorbells) {
    const Performance performance = performance_of({kReceiveAtH0});
    EXPECT_TRUE(judged("count: {of: {posted: receive}, exactly: 3}", performance).holds);
    EXPECT_FALSE(judged("count: {of: {posted: receive}, exactly: 1}", performance).holds);
    EXPECT_FALSE(judged("count: {of: {posted: send}, least: 1}", performance).holds);
}

TEST(Judge, HostAndNegationNarrowAPattern) {
    const Performance performance = performance_of({kRtrOfH0, kFailure});
    EXPECT_FALSE(judged("never: {completion: \"!SUCCESS\"}", performance).holds);
    EXPECT_TRUE(judged("never: {completion: \"!SUCCESS\", host: h0}", performance).holds);
    EXPECT_TRUE(judged("never: {completion: \"!RETRY_EXC_ERR\"}", performance).holds);
    EXPECT_FALSE(judged("never: {completion: [SUCCESS, RETRY_EXC_ERR]}", performance).holds);
    EXPECT_TRUE(judged("count: {of: {state: \"*\"}, exactly: 1}", performance).holds);
}

TEST(Judge, TellsAPacketToItsOwnQueuePair) {
    const auto packet_to = [](int dest_qpn) {
        return record(1, 0, "packet", "packet_sent",
                      "\"qpn\":5,\"dest_qpn\":" + std::to_string(dest_qpn) +
                          R"(,"opcode":"SEND_ONLY","psn":1,"payload":0,"retransmission":false)");
    };
    const std::string to_itself = "never: {packet: \"*\", to_itself: \"yes\"}";
    const std::string to_others = "never: {packet: \"*\", to_itself: \"no\"}";
    EXPECT_FALSE(judged(to_itself, performance_of({packet_to(6), packet_to(5)})).holds);
    EXPECT_TRUE(judged(to_itself, performance_of({packet_to(6)})).holds);
    EXPECT_TRUE(judged(to_others, performance_of({packet_to(5)})).holds);
    EXPECT_FALSE(judged(to_others, performance_of({packet_to(6)})).holds);
}

TEST(Judge, TellsRegionsApartByTheirRights) {
    const auto region = [](const char* remote_read) {
        return record(1, 0, "object", "memory_region",
                      std::string(R"("handle":1,"bytes":64,"local_write":true,"remote_read":)") +
                          remote_read);
    };
    const std::string readable = "never: {region: \"64\", remote_read: \"yes\"}";
    EXPECT_FALSE(judged(readable, performance_of({region("false"), region("true")})).holds);
    EXPECT_TRUE(judged(readable, performance_of({region("false")})).holds);
}

TEST(Judge, KnowsHowManyRequestsWerePosted) {
    const auto posted = [](int number) {
        return record(1, 0, "call", "posted",
                      "\"qpn\":5,\"send\":false,\"posted\":" + std::to_string(number));
    };
    const std::string third_behind_rtr =
        "order: {first: {state: RTR}, before: {posted: receive, number: \"3\"}}";
    EXPECT_TRUE(judged(third_behind_rtr, performance_of({posted(2), kRtrOfH0, posted(3)})).holds);
    EXPECT_FALSE(judged(third_behind_rtr, performance_of({posted(3), kRtrOfH0})).holds);
}

TEST(Judge, TellsTheQueuePairsOfAHostApart) {
    const auto made = [](int node, int qpn) {
        return record(1, node, "object", "queue_pair",
                      "\"qpn\":" + std::to_string(qpn) + R"(,"service":"RC","state":"RESET")");
    };
    const std::string first = made(0, 5);
    const std::string second = made(0, 6);
    const std::string of_h1 = made(1, 5);
    const std::string rtr_of_second =
        record(25, 0, "state", "qp_state", R"("qpn":6,"from":"INIT","to":"RTR")");
    const Performance performance =
        performance_of({first, second, first, of_h1, kRtrOfH0, kRtrOfH1});
    EXPECT_TRUE(judged("count: {of: {state: RTR, qp: 1}, exactly: 2}", performance).holds);
    EXPECT_TRUE(judged("count: {of: {state: RTR, host: h0, qp: 1}}", performance).holds);
    EXPECT_FALSE(judged("count: {of: {state: RTR, host: h0, qp: 2}}", performance).holds);
    EXPECT_TRUE(judged("count: {of: {state: RTR, host: h0, qp: 2}}",
                       performance_of({first, second, rtr_of_second}))
                    .holds);
}

// An answer that does nothing breaks no rule.
TEST(Judge, LeavesOpenWhatOnlyForbidsUntilSomethingWasDone) {
    const std::string asks = "  - {name: q, asks: a, say: s, count: {of: {state: RTR}}}\n";
    const std::string forbids =
        "  - {name: n, asks: a, say: s, never: {completion: \"!SUCCESS\"}}\n"
        "  - {name: m, asks: a, say: s, count: {of: {state: RTS}, least: 0, most: 2}}\n"
        "  - {name: o, asks: a, say: s, no_output: wrong}\n"
        "  - {name: e, asks: a, say: s, exit: 0}\n";
    const std::string opened = record(1, 0, "object", "context", R"("handle":1,"open":true)");
    std::vector<Finding> findings = findings_of(asks + forbids, performance_of({opened}));
    EXPECT_FALSE(findings[0].open);
    for (std::size_t i = 0; i < findings.size(); ++i) {
        EXPECT_FALSE(findings[i].holds) << i;
        EXPECT_EQ(findings[i].open, i > 0) << i;
    }
    for (const Finding& finding : findings_of(asks + forbids, performance_of({opened, kRtrOfH0}))) {
        EXPECT_TRUE(finding.holds);
    }
    for (const Finding& finding : findings_of(forbids, performance_of({opened}))) {
        EXPECT_TRUE(finding.holds) << "no rule asks for something";
    }
    findings = findings_of(asks + forbids, performance_of({opened, kFailure}));
    EXPECT_FALSE(findings[1].open) << "what is forbidden has happened";
}

TEST(Judge, ARuleWithOnceIsOpenUntilOneOfThoseHolds) {
    const std::string rules =
        "  - {name: q, asks: a, say: s, once: [r, t], count: {of: {state: RTR, host: h0}}}\n"
        "  - {name: r, asks: a, say: s, count: {of: {state: RTR, host: h1}}}\n"
        "  - {name: t, asks: a, say: s, count: {of: {state: RTS}}}\n";
    const std::string opened = record(1, 0, "object", "context", R"("handle":1,"open":true)");
    const Finding alone = findings_of(rules, performance_of({opened, kRtrOfH0}))[0];
    EXPECT_TRUE(alone.open);
    EXPECT_FALSE(alone.holds);
    EXPECT_TRUE(findings_of(rules, performance_of({opened, kRtrOfH0, kRtrOfH1}))[0].holds);
    EXPECT_FALSE(findings_of(rules, performance_of({opened, kRtrOfH1}))[0].open);
    const Finding broken = findings_of(rules, performance_of({opened}))[0];
    EXPECT_TRUE(broken.open);  // what r and t lack explains it
    EXPECT_FALSE(broken.holds);
}

// Whatever it printed, and though nothing went wrong.
TEST(Judge, GivesNothingToAProgramThatOpensNoDevice) {
    const std::string prints =
        "  - {name: p, asks: a, say: s, output: done}\n"
        "  - {name: e, asks: a, say: s, exit: 0}\n";
    const std::string never = "  - {name: n, asks: a, say: s, never: {completion: \"!SUCCESS\"}}\n";
    Performance performance = performance_of({});
    performance.output = "done";
    for (const Finding& finding : findings_of(prints + never, performance)) {
        EXPECT_FALSE(finding.holds);
        EXPECT_TRUE(finding.open);
    }
    for (const Finding& finding : findings_of(prints, performance)) {
        EXPECT_TRUE(finding.holds) << "a rubric that asks nothing of devices";
    }
    Performance opened =
        performance_of({record(1, 0, "object", "context", R"("handle":1,"open":true)")});
    opened.output = "done";
    for (const Finding& finding : findings_of(prints + never, opened)) {
        EXPECT_TRUE(finding.holds);
    }
}

TEST(Judge, WhatIsForbiddenStaysOpenWhenTheProgramDidNotGetThere) {
    Performance performance = performance_of({kRtrOfH0});
    performance.ending = {Ending::Kind::kExited, 1};
    const Finding finding = judged("never: {completion: \"!SUCCESS\"}", performance);
    EXPECT_FALSE(finding.holds);
    EXPECT_TRUE(finding.open);
    EXPECT_FALSE(judged("count: {of: {state: RTR}, least: 1}", performance).open);
}

// Deeds before the crash are judged; what was not done might have been done after it.
TEST(Judge, WhatACrashPreventedStaysOpen) {
    Performance performance = performance_of({kRtrOfH0});
    for (const Ending::Kind kind : {Ending::Kind::kKilledBySignal, Ending::Kind::kTimedOut}) {
        performance.ending = {kind, 11};
        EXPECT_TRUE(judged("count: {of: {state: RTR}, exactly: 2}", performance).open);
        EXPECT_TRUE(judged("output: x", performance).open);
        EXPECT_TRUE(judged("closed: [qp]", performance).open);
        EXPECT_FALSE(judged("never: {state: RTR}", performance).open);
        EXPECT_FALSE(
            judged("order: {first: {posted: receive}, before: {state: RTR}}", performance).open);
    }
    performance.ending = {Ending::Kind::kStuck, 0};
    EXPECT_FALSE(judged("count: {of: {state: RTR}, exactly: 2}", performance).open);
}

TEST(Judge, MeasuresVirtualTime) {
    const Performance performance = performance_of({kRtrOfH1, kFailure});
    const std::string from_to = "from: {state: RTR}, to: {completion: RETRY_EXC_ERR}";
    EXPECT_TRUE(judged("between: {" + from_to + ", least: 5us, most: 6us}", performance).holds);
    EXPECT_FALSE(judged("between: {" + from_to + ", most: 4us}", performance).holds);
    EXPECT_FALSE(judged("between: {from: {state: RTR}, to: {state: ERR}}", performance).holds);
}

TEST(Judge, ObjectsThatAreLeftAreNamed) {
    const auto call = [](const std::string& verb) {
        return record(0, 0, "call", "verb", R"("verb":")" + verb + R"(","handle":1,"errno":0)");
    };
    const std::string made = call("create_cq");
    const std::string ended = call("destroy_cq");
    EXPECT_TRUE(judged("closed: [cq]", performance_of({made, ended})).holds);
    const Finding left = judged("closed: [cq]", performance_of({made, made, ended}));
    EXPECT_FALSE(left.holds);
    EXPECT_EQ(left.seen, "ibv_create_cq 2 times, ibv_destroy_cq 1 time");
    EXPECT_FALSE(judged("closed: [cq]", performance_of({})).holds) << "nothing was made";
    EXPECT_TRUE(judged("balance: {of: {call: create_cq}, as: {call: destroy_cq}}",
                       performance_of({made, ended}))
                    .holds);
}

TEST(Judge, OutputAndEnding) {
    Performance performance = performance_of({});
    performance.output = "counter 6\n";
    EXPECT_TRUE(judged("output: \"counter [0-9]\"", performance).holds);
    EXPECT_FALSE(judged("no_output: \"counter\"", performance).holds);
    EXPECT_TRUE(judged("exit: 0", performance).holds);
    performance.ending = {Ending::Kind::kKilledBySignal, 11};
    EXPECT_THAT(judged("exit: 0", performance).seen, HasSubstr("Segmentation fault"));
    performance.ending = {Ending::Kind::kTimedOut, 0};
    EXPECT_FALSE(judged("exit: 0", performance).holds);
}

TEST(Judge, SaysWhyACallWasRefused) {
    Performance performance = performance_of(
        {record(0, 0, "call", "verb", R"("verb":"modify_qp","handle":1,"errno":22)")});
    const std::string rule = "never: {call: modify_qp, errno: \"!0\"}";
    EXPECT_THAT(judged(rule, performance).seen, testing::Not(HasSubstr("refused")));
    performance.errors = "words\nsimverbs: ibv_modify_qp refused [0x1]: INIT to RTR lacks AV\n";
    EXPECT_THAT(judged(rule, performance).seen,
                HasSubstr("errno 22; ibv_modify_qp refused [0x1]: INIT to RTR lacks AV"));
}

// A regular expression recurses for each character.
TEST(Judge, EndlessOutputIsSearchedAsFarAsItGoes) {
    Performance performance = performance_of({});
    performance.output = "begin" + std::string(std::size_t{1} << 20, 'a');
    EXPECT_FALSE(judged("output: \"begin[^]*end\"", performance).holds);
    EXPECT_TRUE(judged("output: \"begin[^]*a\"", performance).holds);
}

}  // namespace
}  // namespace simverbs::lab
