// Demands on a branch that has passed: the mistakes that count, and its virtual time.
#include "scenarios/explore/demands.hpp"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace scenarios {
namespace {

using simverbs::Misuse;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

TEST(Mistakes, AreLinesOfTheLibrary) {
    const auto mistakes = mistakes_in(
        "simverbs: polled_once: ibv_poll_cq does not wait [0x1]\n"
        "the program says simverbs: not_destroyed: in the middle of a line\n"
        "simverbs: no such mistake: this is another message\n"
        "simverbs: not_destroyed: the program left objects behind: 1 PD\n"
        "simverbs: not_destroyed: the program left objects behind: 2 PDs\n"
        "simverbs: 3 lines");
    EXPECT_THAT(mistakes, ElementsAre(Field(&Mistake::misuse, Misuse::kPolledOnce),
                                      Field(&Mistake::misuse, Misuse::kNotDestroyed)));
    EXPECT_EQ(mistakes.back().line,
              "simverbs: not_destroyed: the program left objects behind: 1 PD");
    EXPECT_THAT(mistakes_in(""), IsEmpty());
}

TEST(Mistakes, OfAServedWorldAreThoseOfEachHost) {
    const auto mistakes = mistakes_in(
        "h0 | simverbs: not_destroyed: the program left objects behind: 1 PD\n"
        "h1 | simverbs: not_destroyed: the program left objects behind: 1 PD\n"
        "h1 | simverbs: not_destroyed: the program left objects behind: 2 PDs\n"
        "h1 | no mistake | simverbs: destroyed_twice: in the middle of a line\n");
    EXPECT_THAT(mistakes, ElementsAre(Field(&Mistake::host, "h0"), Field(&Mistake::host, "h1")));
    EXPECT_EQ(mistakes.front().line,
              "h0 | simverbs: not_destroyed: the program left objects behind: 1 PD");
}

TEST(Demands, WhatAnotherHostDoesWithoutFaultsIsNoExcuse) {
    BranchResult result;
    result.mistakes = {{Misuse::kNotDestroyed, "a line", "h1"}};
    apply({.usual_mistakes = {{Misuse::kNotDestroyed, "a line", "h0"}}}, {}, result);
    EXPECT_EQ(result.outcome, Outcome::kLeaks);
}

// Returns the outcome of a branch whose program makes that mistake.
Outcome judged(Misuse misuse, bool is_repaired, bool ended_well, const Demands& demands = {}) {
    Branch branch;
    branch.is_repaired = is_repaired;
    BranchResult result;
    result.ended_well = ended_well;
    result.mistakes = {{misuse, "a line"}};
    apply(demands, branch, result);
    return result.outcome;
}

TEST(Demands, ALeakIsExcusedByAnotherStatus) {
    EXPECT_EQ(judged(Misuse::kNotDestroyed, true, true), Outcome::kLeaks);
    EXPECT_EQ(judged(Misuse::kNotDestroyed, false, true), Outcome::kLeaks);
    EXPECT_EQ(judged(Misuse::kNotDestroyed, false, false), Outcome::kPassed);
}

TEST(Demands, FailedConnectionsExcuseMistakesWithData) {
    EXPECT_EQ(judged(Misuse::kBufferChanged, true, true), Outcome::kMisuse);
    EXPECT_EQ(judged(Misuse::kBufferChanged, false, true), Outcome::kPassed);
}

TEST(Demands, AnEventExcusesAPollThatFindsNothing) {
    EXPECT_EQ(judged(Misuse::kPolledOnce, true, true), Outcome::kMisuse);
    EXPECT_EQ(judged(Misuse::kPolledOnce, false, true), Outcome::kPassed);
    Branch branch{.choices = {{.group = ChoiceGroup::kEvents}}, .is_repaired = true};
    BranchResult result;
    result.mistakes = {{Misuse::kPolledOnce, "a line"}};
    apply({}, branch, result);
    EXPECT_EQ(result.outcome, Outcome::kPassed);
}

TEST(Demands, CompletionsMayStayUnread) {
    EXPECT_EQ(judged(Misuse::kCompletionsUnread, true, true), Outcome::kPassed);
}

TEST(Demands, NothingExcusesUseAfterDestroy) {
    EXPECT_EQ(judged(Misuse::kUsedAfterDestroy, false, false), Outcome::kMisuse);
}

TEST(Demands, WhatIsUsualIsNoFinding) {
    const Demands demands{.usual_mistakes = {{Misuse::kUsedAfterDestroy, "the same"}}};
    EXPECT_EQ(judged(Misuse::kUsedAfterDestroy, true, true, demands), Outcome::kPassed);
    EXPECT_EQ(judged(Misuse::kDestroyedTwice, true, true, demands), Outcome::kMisuse);
}

TEST(Demands, ABranchEndsInTime) {
    const Demands demands{.within = fabric::SimDuration(1000)};
    BranchResult result;
    result.time_ps = 1000;
    apply(demands, {}, result);
    EXPECT_EQ(result.outcome, Outcome::kPassed);
    result.time_ps = 1001;
    apply(demands, {}, result);
    EXPECT_EQ(result.outcome, Outcome::kTooSlow);
    EXPECT_EQ(result.expected, "an end within 1ns");
    EXPECT_EQ(result.happened, "an end after 1.001ns");
}

TEST(Demands, AFailureStaysWhatItIs) {
    BranchResult result;
    result.outcome = Outcome::kHangs;
    result.time_ps = 2000;
    result.mistakes = {{Misuse::kBufferChanged, "a line"}};
    apply({.within = fabric::SimDuration(1000)}, {}, result);
    EXPECT_EQ(result.outcome, Outcome::kHangs);
    EXPECT_EQ(result.mistakes.size(), 1U);
}

}  // namespace
}  // namespace scenarios
