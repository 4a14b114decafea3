// Explanations: from the completion back to the fault that was injected, by its name.
#include "scenarios/engine/explain.hpp"

#include <filesystem>

#include <unistd.h>

#include "tests/scenarios/scenario_text.hpp"
#include "tests/support/outcome.hpp"

namespace scenarios {
namespace {

// Names are literals.
Record record_of(std::int64_t time_ps, std::string_view name,
                 const std::vector<std::pair<std::string_view, std::string>>& texts,
                 const std::vector<std::pair<std::string_view, std::uint64_t>>& numbers) {
    Record record{time_ps, "h1", "", name, {}};
    for (const auto& [field, text] : texts) {
        record.fields.push_back({field, text, 0});
    }
    for (const auto& [field, number] : numbers) {
        record.fields.push_back({field, std::to_string(number), number});
    }
    return record;
}

// Each file of the library that injects a fault into something that then fails.
TEST(Explain, NamesTheInjectedFaultOfEachScenario) {
    int tried = 0;
    const auto files = find_files({SIMVERBS_SCENARIO_LIBRARY});
    ASSERT_TRUE(files) << files.error();
    for (const std::string& file : *files) {
        const auto scenario = load(file, {});
        ASSERT_TRUE(scenario) << scenario.error();
        const auto faults = scenario->at("faults").items();
        const Verdict verdict = run(*scenario);
        if (faults.empty() || verdict.root.cause.empty()) {
            continue;
        }
        ++tried;
        bool named = false;
        for (const fabric::yaml::Value& fault : faults) {
            named = named || verdict.explanation.find("Root: the injected fault \"" +
                                                      Checked(fault).text("name") + "\"") !=
                                 std::string::npos;
        }
        EXPECT_TRUE(named) << file << "\n" << verdict.explanation;
    }
    EXPECT_GT(tried, 10);
}

TEST(Explain, SaysThatProgramsDidItWhereNoFaultWasInjected) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1]}}
hosts:
  h0:
    do: [{write: {qp: c, id: 1, rkey: bad}}, {send: {qp: c, id: 2}}, {poll: {qp: c, count: 2}}]
)");
    EXPECT_NE(verdict.explanation.find("completed with REM_ACCESS_ERR"), std::string::npos)
        << verdict.explanation;
    EXPECT_NE(verdict.explanation.find("h1 found it"), std::string::npos) << verdict.explanation;
    EXPECT_NE(verdict.explanation.find("No fault was injected"), std::string::npos);
}

TEST(Explain, TellsOfNaksThatFaultsMake) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1]}}
hosts: {h0: {do: [{write: {qp: c, id: 1}}, {poll: {qp: c}}]}}
faults: [{action: nak, nak: remote_operational, when: {qp: h0/c}}]
)");
    EXPECT_NE(verdict.explanation.find("completed with REM_OP_ERR: a packet of it was answered by "
                                       "a NAK that a fault made"),
              std::string::npos)
        << verdict.explanation;
}

// A packet that was lost and sent again does not change a key.
TEST(Explain, TellsWhatHappenedOnTheWayFromTheReason) {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1]}}
hosts: {h0: {do: [{write: {qp: c, id: 1, rkey: bad}}, {poll: {qp: c}}]}}
faults: [{name: lost, action: drop, when: {from: h0}}]
)");
    EXPECT_NE(verdict.explanation.find("not the reason: the injected fault \"lost\""),
              std::string::npos)
        << verdict.explanation;
    EXPECT_EQ(verdict.explanation.find("Root:"), std::string::npos);
}

// A flush is the consequence of something.
TEST(Explain, GoesFromFlushedWorkToWhatStoppedTheQueuePair) {
    const std::string trace = testing::TempDir() + std::to_string(getpid()) + "_explain.jsonl";
    const auto scenario = parse(R"(
connections: {c: {between: [h0, h1]}}
hosts: {h0: {do: [{send: {qp: c, id: 1, count: 2}}, {poll: {qp: c, count: 2}}]}}
faults: [{name: broken, action: execution, when: {qp: h0/c}}]
)",
                                "test.yaml", {});
    ASSERT_TRUE(scenario) << scenario.error();
    run(*scenario, {.files = {.trace = trace}});
    const auto records = read_trace(trace);
    ASSERT_TRUE(records) << records.error();
    const std::string text = explain(*records, {std::nullopt, 1U, {}}).value_or("");
    EXPECT_NE(text.find("completed with WR_FLUSH_ERR"), std::string::npos) << text;
    EXPECT_NE(text.find("completed with FATAL_ERR"), std::string::npos) << text;
    EXPECT_NE(text.find("Root: the injected fault \"broken\" (execution)"), std::string::npos)
        << text;
    std::filesystem::remove(trace);
}

// Places in a queue begin anew with each RESET: the last request of that place is meant.
TEST(Explain, MeansTheLastLifeOfAQueuePair) {
    const auto completion = [](std::int64_t time_ps, const char* status, const char* cause) {
        return record_of(time_ps, "completion", {{"status", status}, {"cause", cause}},
                         {{"qpn", 5}, {"index", 0}, {"cq", 1}});
    };
    const std::vector<Record> records = {
        completion(1'000, "LOC_LEN_ERR", "receive too small"),
        record_of(2'000, "qp_state", {{"to", "RESET"}, {"trigger", "modify"}}, {{"qpn", 5}}),
        completion(3'000, "LOC_PROT_ERR", "receive key")};
    EXPECT_EQ(find_completion(records, {5U, 0U, {}}), &records[2]);
    EXPECT_EQ(find_completion(records, {5U}), &records[2]);
    EXPECT_EQ(find_completion(records, {}), &records[0]);
    EXPECT_EQ(find_completion(records, {.is_of_this_life = true}), &records[2]);
    const std::span first_life = std::span(records).first(2);
    EXPECT_EQ(find_completion(first_life, {.is_of_this_life = true}), nullptr);
    EXPECT_EQ(find_completion(first_life, {5U}), &records[0]);
}

// An expectation may fail where no work request has.
TEST(Explain, SaysNothingOfWhatDidNotFail) {
    const auto scenario = parse(R"(
connections: {c: {between: [h0, h1]}}
hosts: {h0: {do: [{write: {qp: c, id: 1}}, {poll: {qp: c}}]}}
expect: {completions: {h0/c: [{id: 2}]}}
)",
                                "test.yaml", {});
    ASSERT_TRUE(scenario) << scenario.error();
    const Verdict verdict = run(*scenario);
    EXPECT_FALSE(verdict.passed());
    EXPECT_EQ(verdict.explanation, "");
    EXPECT_EQ(report(verdict, {}).find("why"), std::string::npos) << report(verdict, {});
}

TEST(Explain, SaysWhichTagAMessageMatched) {
    std::vector<Record> records = {
        record_of(10, "tag", {{"outcome", "matched"}}, {{"qpn", 7}, {"tag", 0x51}, {"handle", 3}}),
        record_of(20, "tag", {{"outcome", "not in use"}}, {{"qpn", 7}, {"tag", 0x52}}),
        record_of(30, "completion",
                  {{"status", "TM_RNDV_INCOMPLETE"},
                   {"opcode", "TM_RECV"},
                   {"cause", "rendezvous left to software"}},
                  {{"qpn", 7}, {"index", 3}})};
    std::string text = explain(records, {7U, 3U, {}}).value_or("");
    EXPECT_NE(text.find("tag 0x51 matched the tag of handle 3"), std::string::npos) << text;
    EXPECT_NE(text.find("does not fit into the tagged buffer"), std::string::npos) << text;
    records.back().fields[0].text = "SUCCESS";
    records.back().fields[4].number = 4;
    text = explain(records, {7U, 4U, {}}).value_or("");
    EXPECT_EQ(text.find("tag 0x51"), std::string::npos) << text;
    EXPECT_NE(text.find("tag 0x52 took an ordinary receive: the tag that it matches was added"),
              std::string::npos)
        << text;
}

TEST(Explain, CountsTheRestOfACutMessageWithThePacketThatTellsIt) {
    std::vector<Record> records;
    for (std::uint64_t psn = 2; psn <= 4; ++psn) {
        records.push_back(record_of(
            10, "packet_sent", {},
            {{"qpn", 5}, {"frame", psn}, {"dest_qpn", 7}, {"bth_opcode", 33}, {"psn", psn}}));
        records.back().node = "h0";
        records.push_back(record_of(20, "frame_received", {}, {{"flow", 5}, {"frame", psn}}));
        records.push_back(psn == 2 ? record_of(20, "dropped", {{"cause", "message cut on UC"}},
                                               {{"qpn", 7}, {"psn", psn}})
                                   : record_of(20, "packet_discarded",
                                               {{"fate", "rest of a cut message"}},
                                               {{"dest_qpn", 7}, {"psn", psn}}));
    }
    EXPECT_NE(
        explain(records, Question{})
            .value_or("")
            .find("3 packets without acknowledgment of h0 QP 0x5 for QP 0x7 lost at h1, and the "
                  "sender is not told: another packet of its message was missing"),
        std::string::npos);
}

// Two datagrams of h0 to h1, which has what `receiver` gives it; the sends succeed.
std::string explain_datagrams(const std::string& receiver, const std::string& connection = "") {
    const Verdict verdict = run_text(R"(
connections: {c: {between: [h0, h1], type: UD)" +
                                     connection + R"(}}
hosts:
  h0:
    do:
      - send: {qp: c, id: 1, count: 2, length: 100}
      - poll: {qp: c, count: 2, status: SUCCESS}
)" + receiver);
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    return verdict.explanation;
}

TEST(Explain, TellsOfDatagramsThatWereLostThoughTheirSendsSucceeded) {
    const std::string no_receive = explain_datagrams("");
    EXPECT_NE(no_receive.find("2 packets without acknowledgment of h0/c (QP 0x10001) for QP"),
              std::string::npos)
        << no_receive;
    EXPECT_NE(no_receive.find("lost at h1, and the sender is not told: no receive was posted"),
              std::string::npos)
        << no_receive;

    const std::string too_long = explain_datagrams(R"(
  h1: {do: [{receive: {qp: c, id: 7, length: 120, count: 2}}]}
)");
    EXPECT_NE(too_long.find("the receive was too short"), std::string::npos) << too_long;
}

TEST(Explain, TellsOfLostDatagramsOfTheNodeAndQueuePairThatAreAskedFor) {
    std::vector<Record> records = {
        record_of(10, "packet_sent", {},
                  {{"qpn", 5}, {"frame", 1}, {"dest_qpn", 7}, {"bth_opcode", 100}, {"psn", 9}}),
        record_of(20, "frame_received", {}, {{"flow", 5}, {"frame", 1}}),
        record_of(20, "packet_discarded", {{"fate", "P_Key mismatch"}},
                  {{"dest_qpn", 7}, {"psn", 9}}),
        record_of(30, "packet_sent", {},
                  {{"qpn", 6}, {"frame", 2}, {"dest_qpn", 8}, {"bth_opcode", 4}, {"psn", 1}}),
        record_of(40, "frame_dropped", {{"reason", "link down"}}, {{"flow", 6}, {"frame", 2}})};
    records[0].node = "h0";
    for (const Question& question : {Question{}, Question{5U, {}, {}}, Question{7U, {}, {}},
                                     Question{{}, {}, "h0"}, Question{{}, {}, "h1"}}) {
        EXPECT_EQ(explain(records, question).value_or(""),
                  "    20ps: 1 packet without acknowledgment of h0 QP 0x5 for QP 0x7 lost at h1, "
                  "and the sender is not told: P_Key mismatch. The first had PSN 9.\n");
    }
    EXPECT_FALSE(explain(records, {6U, {}, {}})) << "an acknowledged service sends again";
    EXPECT_FALSE(explain(records, {{}, {}, "h2"}));
}

TEST(Explain, RefusesWhatIsNoTrace) {
    EXPECT_NE(fabric::error_of(read_trace("/nonexistent")).find("cannot be read"),
              std::string::npos);
    const std::string library = SIMVERBS_SCENARIO_LIBRARY;
    EXPECT_NE(
        fabric::error_of(read_trace(library + "/status_success.yaml")).find("no trace of simverbs"),
        std::string::npos);
}

}  // namespace
}  // namespace scenarios
