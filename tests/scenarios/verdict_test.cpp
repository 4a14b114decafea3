// What a verdict says beside passed and failed: faults that mean nothing, and runs that tested
// nothing.
#include <gmock/gmock.h>

#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

// What a fault lacks is said in the words of scenarios.
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
             Lacking{"action: nak, status: REM_OP_ERR", "1:10: nak does not read status"},
             Lacking{"action: call, errno: ENOMEM, when: {psn: 1, call: ibv_reg_mr}",
                     "1:10: call does not read when: psn"},
             Lacking{"action: call, when: {call: ibv_x}", "1:10: when: call 'ibv_x' is no verb"},
         }) {
        std::string errors;
        const auto scenario =
            parse(std::string("faults: [{") + fault + "}]", "test.yaml", {}, errors);
        ASSERT_TRUE(scenario) << errors;
        const Verdict verdict = run(*scenario);
        EXPECT_NE(verdict.error.find(says), std::string::npos) << verdict.error;
        EXPECT_TRUE(verdict.is_input);
    }
}

// It passes, and yet nothing was tested.
TEST(Warnings, AreOfFaultsThatNeverFiredAndOfNoWork) {
    const auto warnings = [](const char* text) {
        std::string errors;
        const auto scenario = parse(text, "test.yaml", {}, errors);
        EXPECT_TRUE(scenario) << errors;
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
                testing::ElementsAre("the fault \"late\" never fired"));
    EXPECT_THAT(warnings((fault + "when: {nth: 1, from: h0}}]").c_str()), testing::IsEmpty());
}

}  // namespace
}  // namespace scenarios
