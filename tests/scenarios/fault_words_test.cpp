// Mistakes in a fault of a scenario are told in the words of the file, never in those of the C API:
// over all actions, all triggers and all keys.
#include "scenarios/engine/fault_words.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>

#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

// Keys of a fault with values that some action does not read, or that are out of its range.
constexpr const char* kKeys[] = {"link: h0-s0",
                                 "node: h1",
                                 "node: s0",
                                 "port: 200",
                                 "qp: h0/c",
                                 "queue: receive",
                                 "cq: c, node: h0",
                                 "memory: mem, node: h0",
                                 "fault: first",
                                 "duration: 1us",
                                 "interval: 1us",
                                 "times: 70000",
                                 "value: 99999999",
                                 "value: 0",
                                 "status: REM_OP_ERR",
                                 "nak: remote_access",
                                 "errno: ENOMEM",
                                 "field: psn",
                                 "field: opcode, value: 255",
                                 "offset: 4000000000",
                                 "bits: 3",
                                 "rate: 4x EDR"};
constexpr const char* kWhens[] = {"delay: 1us",
                                  "psn: 1",
                                  "attempt: 1",
                                  "call: ibv_x",
                                  "opcode: NONSENSE",
                                  "queue: receive",
                                  "host: h0",
                                  "from: h0",
                                  "transmitter: h0",
                                  "link: h0-s0, transmitter: h1",
                                  "direction: responses",
                                  "at: 2us, until: 1us",
                                  "chance: 5/3",
                                  "chance: 1/0",
                                  "chance: x",
                                  "qp: h0/c"};

void expect_words_of_files(const std::string& fault, std::set<std::string>& seen) {
    const Verdict verdict =
        run_text("connections: {c: {between: [h0, h1]}}\nfaults: [{name: first, action: mark}, {" +
                 fault + "}]\n");
    for (const char* const word : {"SIMVERBS_", "_ps", "match.", "target.", "with.", "chance_of",
                                   "qp_num", "_CALL", "ibv_qp.", "enum "}) {
        EXPECT_EQ(verdict.error.find(word), std::string::npos)
            << fault << "\n"
            << verdict.error << "\nhas the word " << word;
    }
    seen.insert(verdict.error.substr(0, verdict.error.find(" is")));
}

TEST(FaultsOfScenarios, AreRefusedInTheWordsOfTheFile) {
    std::set<std::string> seen;
    for (const std::string_view action : kActionWords) {
        const std::string begin = "action: " + std::string(action);
        expect_words_of_files(begin, seen);
        for (const char* const key : kKeys) {
            expect_words_of_files(begin + ", " + key, seen);
        }
        for (const std::string_view trigger : kTriggerWords) {
            expect_words_of_files(begin + ", when: {on: " + std::string(trigger) + "}", seen);
        }
        for (const char* const when : kWhens) {
            expect_words_of_files(begin + ", when: {" + when + "}", seen);
        }
    }
    EXPECT_GT(seen.size(), 40U) << "messages that differ";
}

TEST(FaultsOfScenarios, NameTheTriggerOfTheFile) {
    EXPECT_THAT(run_text("faults: [{action: host_kill, node: h1, when: {psn: 1}}]").error,
                testing::HasSubstr("host_kill does not read when: psn; it waits for a time unless "
                                   "`when` has on: packet, on: work_request or on: call"));
    EXPECT_THAT(run_text("connections: {c: {between: [h0, h1]}}\n"
                         "faults: [{action: process_kill, node: h0, when: {qp: h1/c}}]")
                    .error,
                testing::HasSubstr("process_kill does not read when: qp; it waits for a time"));
    EXPECT_THAT(run_text("faults: [{action: rnr_nak, value: 40}]").error,
                testing::HasSubstr("rnr_nak: value is 40, not a timer, 0 to 31"));
    EXPECT_THAT(run_text("faults: [{action: mark, when: {at: 2us, until: 1us}}]").error,
                testing::HasSubstr("when: until, 1us, is not after when: at, 2us"));
    EXPECT_THAT(run_text("faults: [{action: drop, when: {chance: 5/3}}]").error,
                testing::HasSubstr("chance 5/3 is more than 1/1"));
    EXPECT_THAT(errors_of("faults: [{action: drop, when: {attempt: 0}}]"),
                testing::HasSubstr("expected a number from 1"));
}

}  // namespace
}  // namespace scenarios
