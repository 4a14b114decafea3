// Explorations of small scenarios: what is tried, what is found, and that the result is always the
// same.
#include "scenarios/explore/explore.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/core/temporary_folder.hpp"

#include "scenarios/engine/run.hpp"

namespace scenarios {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// One message of one packet, and its acknowledgement.
constexpr std::string_view kPing = R"(
connections: {c: {between: [h0, h1]}}
hosts:
  h0: {do: [{send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
)";

class Explore : public testing::Test {
  protected:
    ExploreResult explore(std::string_view text, ExploreOptions options = {}) {
        const auto scenario = parse(text, "test.yaml", {});
        EXPECT_TRUE(scenario) << scenario.error();
        options.folder = place_.file("kept");
        return scenario ? scenarios::explore(*scenario_subject(*scenario), options)
                        : ExploreResult{};
    }

    static std::vector<std::string> names(const ExploreResult& result) {
        std::vector<std::string> all;
        for (const Finding& finding : result.findings) {
            for (const Choice& choice : finding.choices) {
                all.push_back(choice.name);
            }
        }
        return all;
    }

  private:
    fabric::TemporaryFolder place_{"explore-test-"};
};

TEST_F(Explore, TriesEachFaultAtEachPacket) {
    const ExploreResult result = explore(kPing, {.groups = {ChoiceGroup::kPackets}});
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.packets, 2U);
    EXPECT_THAT(result.choices, ElementsAre(Pair("packets", 10U)));  // five for each packet
    EXPECT_EQ(result.singles, 10U);
    EXPECT_THAT(result.outcomes, ElementsAre(Pair("passed", 10U)));
    EXPECT_THAT(result.findings, IsEmpty());
}

TEST_F(Explore, AMessageNeedsOneReceive) {
    const auto receives_of = [this](std::string_view operation) {
        return explore(fmt::format(R"(
connections: {{c: {{between: [h0, h1]}}}}
hosts:
  h0: {{do: [{{sleep: 1us}}, {{{}}}, {{poll: {{qp: c, status: SUCCESS}}}}]}}
  h1: {{do: [{{receive: {{qp: c, length: 4096}}}}]}}
)",
                                   operation),
                       {.groups = {ChoiceGroup::kReceives}})
            .singles;
    };
    EXPECT_EQ(receives_of("send: {qp: c}"), 1U);
    EXPECT_EQ(receives_of("send: {qp: c, length: 3000, imm: 1}"), 1U);
    EXPECT_EQ(receives_of("write: {qp: c, imm: 1}"), 1U);
    EXPECT_EQ(receives_of("write: {qp: c, length: 3000, imm: 1}"), 1U);
    EXPECT_EQ(receives_of("write: {qp: c, length: 3000}"), 0U);
}

// Each packet may come with three events of both ports, and a REQ and a REP may be refused.
TEST_F(Explore, AConnectionMayBeRefused) {
    const ExploreResult result = explore(R"(
connections: {c: {between: [h0, h1], cm: true}}
hosts:
  h0: {do: [{listen: {port: 7471}}, {accept: {qp: c}}]}
  h1: {do: [{sleep: 10us}, {connect: {qp: c, port: 7471}}]}
)",
                                         {.groups = {ChoiceGroup::kEvents}});
    EXPECT_EQ(result.error, "");
    EXPECT_THAT(result.choices, ElementsAre(Pair("events", result.packets * 6 + 2)));
}

// Completions of one queue stay in order: those behind a late one are late, too.
TEST_F(Explore, EachCompletionComesLate) {
    constexpr std::string_view kPollsOf = R"(
connections: {{c: {{between: [h0, h1]}}}}
hosts:
  h0: {{do: [{{send: {{qp: c, count: 3}}}}, {{poll: {{qp: c, count: 3, {}}}}}]}}
  h1: {{do: [{{receive: {{qp: c, count: 3}}}}, {{loop: {{times: 3, do: [{{poll: {{qp: c}}}}]}}}}]}}
)";
    const ExploreOptions late{.groups = {ChoiceGroup::kPolls}};
    const ExploreResult patient = explore(fmt::format(kPollsOf, "status: SUCCESS"), late);
    EXPECT_EQ(patient.error, "");
    EXPECT_THAT(patient.choices, ElementsAre(Pair("polls", 6U)));
    EXPECT_THAT(patient.outcomes, ElementsAre(Pair("passed", 6U)));

    const ExploreResult hasty = explore(fmt::format(kPollsOf, "within: 50us"), late);
    EXPECT_THAT(hasty.outcomes, ElementsAre(Pair("failed", 3U), Pair("passed", 3U)));
    EXPECT_THAT(names(hasty), Contains("complete_late of send completion 1 of h0/c"));
}

TEST_F(Explore, AFaultThatLastsBreaksNoInvariant) {
    const ExploreResult result = explore(
        kPing, {.groups = {ChoiceGroup::kLinks, ChoiceGroup::kQueuePairs, ChoiceGroup::kHosts}});
    // At each packet: two links for a moment and for good, two queue pairs, two hosts in three
    // ways.
    EXPECT_EQ(result.singles, 2U * (4 + 2 + 6));
    EXPECT_THAT(result.findings, IsEmpty());
}

TEST_F(Explore, FaultsAtOneHostAreThoseOfItsPacketsLinkAndQueuePairs) {
    const ExploreResult result = explore(kPing, {.host = "h1"});
    EXPECT_THAT(result.choices,
                ElementsAre(Pair("events", 6U), Pair("hosts", 6U), Pair("links", 4U),
                            Pair("packets", 5U), Pair("polls", 1U), Pair("queue_pairs", 2U)));
}

TEST_F(Explore, ASubnetManagerDisturbsNoConnection) {
    const auto events_in = [this](std::string_view topology) {
        const ExploreResult result = explore(fmt::format("fabric: {}\n{}", topology, kPing),
                                             {.groups = {ChoiceGroup::kEvents}});
        EXPECT_THAT(result.findings, IsEmpty());
        return result.singles;
    };
    EXPECT_EQ(events_in("pair"), 2U * 2 * 3);  // at each packet: two ports in three ways
    EXPECT_EQ(events_in("eth-star:2"), 0U);    // no subnet manager
}

TEST_F(Explore, AnUnknownHostIsRefused) {
    EXPECT_EQ(explore(kPing, {.host = "h7"}).error,
              "--host h7: no such host has a queue pair; these have: h0, h1");
}

TEST_F(Explore, FindsAConnectionThatNeverRetries) {
    const ExploreResult result = explore(R"(
connections: {c: {between: [h0, h1], retries: 0}}
hosts:
  h0: {do: [{send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
)",
                                         {.groups = {ChoiceGroup::kPackets}});
    EXPECT_THAT(names(result), Contains("drop of SEND_ONLY, PSN 1 of h0/c, transmission 1"));
    EXPECT_THAT(result.findings,
                Each(Field(&Finding::result,
                           Field(&BranchResult::kind, "operation status RETRY_EXC_ERR"))));
}

TEST_F(Explore, FindsRnrRetriesThatAreTooFew) {
    const ExploreResult result = explore(R"(
connections: {c: {between: [h0, h1], rnr_retries: 0}}
hosts:
  h0: {do: [{sleep: 1us}, {send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
)");
    EXPECT_THAT(names(result),
                ElementsAre("no_receive of SEND_ONLY, PSN 1 of h0/c, transmission 1"));
}

TEST_F(Explore, KeepsAScenarioThatFailsAgain) {
    const ExploreResult result = explore(R"(
connections: {c: {between: [h0, h1], retries: 0}}
hosts: {h0: {do: [{write: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}}
)",
                                         {.groups = {ChoiceGroup::kPackets}});
    ASSERT_THAT(result.findings, testing::Not(IsEmpty()));
    const Finding& first = result.findings.front();
    const auto kept = load(first.kept, {});
    ASSERT_TRUE(kept) << kept.error();
    const Verdict verdict = run(*kept);
    ASSERT_FALSE(verdict.passed());
    EXPECT_EQ(verdict.failures.front().kind, first.result.kind);
    EXPECT_EQ(verdict.failures.front().happened, first.result.happened);
}

TEST_F(Explore, PairsAreTriedOnceEach) {
    const ExploreResult result = explore(kPing, {.groups = {ChoiceGroup::kQueuePairs}, .depth = 2});
    EXPECT_EQ(result.singles, 4U);
    // Both faults at the first packet leave no second one; after one of them h0 sends again.
    EXPECT_GT(result.pairs, 0U);
    EXPECT_THAT(result.findings, IsEmpty());
}

TEST_F(Explore, FindsTheSameWithAnyNumberOfProcesses) {
    constexpr std::string_view kCareless = R"(
connections: {c: {between: [h0, h1], retries: 0}}
hosts:
  h0: {do: [{send: {qp: c, length: 2000}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c, length: 4096}}, {poll: {qp: c, status: SUCCESS}}]}
)";
    const std::vector<ChoiceGroup> groups = {ChoiceGroup::kPackets};
    const ExploreResult one = explore(kCareless, {.groups = groups, .depth = 2, .jobs = 1});
    const ExploreResult many = explore(kCareless, {.groups = groups, .depth = 2, .jobs = 3});
    EXPECT_GT(one.pairs, 0U);
    EXPECT_THAT(one.findings, testing::Not(IsEmpty()));
    EXPECT_EQ(json(one), json(many));
}

TEST_F(Explore, MoreThanTwoFaultsAreDrawnAtRandom) {
    const std::vector<ChoiceGroup> groups = {ChoiceGroup::kPackets};
    const ExploreResult one = explore(kPing, {.groups = groups, .depth = 4, .walks = 30});
    const ExploreResult many =
        explore(kPing, {.groups = groups, .depth = 4, .walks = 30, .jobs = 3});
    EXPECT_GT(one.walked, 30U);
    EXPECT_FALSE(one.walks_left);
    EXPECT_THAT(one.findings, IsEmpty());
    EXPECT_EQ(json(one), json(many));
    EXPECT_EQ(explore(kPing, {.groups = groups, .depth = 2, .walks = 30}).walked, 0U);
}

TEST_F(Explore, AScenarioThatFailsByItselfIsRefused) {
    const ExploreResult result = explore(R"(
connections: {c: {between: [h0, h1], rnr_retries: 1, min_rnr_timer: 1}}
hosts: {h0: {do: [{send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}}
)");
    EXPECT_THAT(result.error, HasSubstr("test.yaml: it fails without any fault: operation status"));
}

TEST_F(Explore, DatagramsMayBeLostButNotSpoiled) {
    const ExploreResult result = explore(R"(
connections: {c: {between: [h0, h1], type: UD}}
hosts:
  h0: {do: [{send: {qp: c, count: 2}}, {poll: {qp: c, count: 2, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c, length: 128, count: 2}}, {poll: {qp: c, count: 2}}]}
)");
    EXPECT_THAT(result.choices, Contains(Pair("packets", 4U)));  // lost or damaged
    EXPECT_THAT(result.outcomes, ElementsAre(Pair("passed", result.singles)));
}

TEST(Surroundings, RepairedFaultsFollowFromRetries) {
    const auto repaired = [](std::string_view connection) {
        const auto scenario = parse(
            fmt::format("connections: {{c: {{between: [h0, h1], {}}}}}\n", connection), "t", {});
        EXPECT_TRUE(scenario) << scenario.error();
        return scenario ? surroundings_of(*scenario).repaired_faults : 99;
    };
    EXPECT_EQ(repaired("type: RC"), 7U);
    EXPECT_EQ(repaired("retries: 2, ends: {h1: {retries: 1}}"), 1U);
    EXPECT_EQ(repaired("retries: 0"), 1U);
    EXPECT_EQ(repaired("rnr_retries: 2"), 2U);
    EXPECT_EQ(repaired("timeout: 0"), 1U);
    EXPECT_EQ(repaired("type: UC"), 0U);
    EXPECT_EQ(repaired("type: UD"), 0U);
}

TEST(Surroundings, OfATraceAreItsQueuePairsAndTheirLinks) {
    std::vector<Record> records;
    const auto add = [&records](std::string node, std::string_view name, std::string_view field,
                                std::string text) {
        records.push_back({.node = std::move(node), .name = name, .fields = {{field, text, 0}}});
    };
    add("h0", "link", "link", "h0-s0");
    add("h1", "link", "link", "h1-s0");
    add("h2", "link", "link", "h2-s0");
    add("h1", "queue_pair", "service", "RC");
    add("h0", "queue_pair", "service", "RC");
    add("h1", "queue_pair", "service", "RC");
    Surroundings found = surroundings_of(records);
    EXPECT_THAT(found.hosts, ElementsAre("h0", "h1"));
    EXPECT_THAT(found.ends, ElementsAre("h1/1", "h0/1", "h1/2"));
    EXPECT_THAT(found.links, ElementsAre(Field(&Surroundings::Link::name, "h0-s0"),
                                         Field(&Surroundings::Link::name, "h1-s0")));
    EXPECT_EQ(found.repaired_faults, 1U);
    add("h0", "queue_pair", "service", "UD");
    EXPECT_EQ(surroundings_of(records).repaired_faults, 0U);
}

TEST_F(Explore, KeepsTheOutcomeOfEachSingleFault) {
    const ExploreResult result = explore(R"(
connections: {c: {between: [h0, h1], retries: 0}}
hosts:
  h0: {do: [{send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
)",
                                         {.groups = {ChoiceGroup::kPackets}});
    ASSERT_EQ(result.tried.size(), 10U);
    std::vector<std::string> receivers;
    std::vector<std::string> completions;
    for (const Place& place : result.places) {
        (place.call.empty() ? receivers : completions)
            .push_back(place.call.empty() ? place.to : place.packet.end + ": " + place.call);
    }
    EXPECT_THAT(receivers, ElementsAre("h1", "h0"));
    EXPECT_THAT(completions, ElementsAre("h1/c: receive completion", "h0/c: send completion"));
    const Tried& drop = result.tried[0];
    EXPECT_EQ(drop.choice.name, "drop of SEND_ONLY, PSN 1 of h0/c, transmission 1");
    EXPECT_EQ(drop.outcome, Outcome::kFailed);
    EXPECT_EQ(drop.finding, 0U);
    const Tried& duplicate = result.tried[2];
    EXPECT_EQ(duplicate.choice.action, "duplicate");
    EXPECT_EQ(duplicate.outcome, Outcome::kPassed);
    EXPECT_EQ(duplicate.finding, std::nullopt);
}

TEST_F(Explore, TellsWhyNothingWasExplored) {
    const std::string_view fails = R"(
connections: {c: {between: [h0, h1], rnr_retries: 1, min_rnr_timer: 1}}
hosts: {h0: {do: [{send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}}
)";
    EXPECT_EQ(explore(fails).unexplored, Unexplored::kFailsByItself);
    EXPECT_EQ(explore("connections: {c: {between: [h0, h1]}}\n").unexplored, Unexplored::kNoPlace);
    EXPECT_EQ(explore(kPing, {.host = "h7"}).unexplored, Unexplored::kNoSuchHost);
    EXPECT_EQ(explore(kPing).unexplored, Unexplored::kNone);
}

TEST_F(Explore, ScenariosAreNumberedBehindThoseThatWereKept) {
    const ExploreResult result = explore(R"(
connections: {c: {between: [h0, h1], retries: 0}}
hosts: {h0: {do: [{write: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}}
)",
                                         {.groups = {ChoiceGroup::kPackets}, .kept = 7});
    ASSERT_THAT(result.findings, testing::Not(IsEmpty()));
    EXPECT_THAT(result.findings.front().kept, HasSubstr("/explore-8.yaml"));
    EXPECT_THAT(report(result, 7), testing::StartsWith("FINDING 8: "));
}

TEST_F(Explore, ABudgetLeavesBranchesOut) {
    const ExploreResult result = explore(kPing, {.budget = std::chrono::milliseconds(0)});
    EXPECT_EQ(result.singles, 0U);
    EXPECT_GT(result.left, 0U);
    EXPECT_EQ(result.tried.size(), result.left);
    EXPECT_THAT(result.tried, Each(Field(&Tried::outcome, std::nullopt)));
    EXPECT_THAT(report(result), HasSubstr("not tried: "));
}

}  // namespace
}  // namespace scenarios
