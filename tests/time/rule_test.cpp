// Tests the rule of time without threads and processes: every line of it, properties of all
// combinations of answers, and defects of the past.
#include "simverbs/time/rule.hpp"

#include <optional>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

namespace simverbs {

static void PrintTo(const Decision& decision, std::ostream* out) {
    *out << "move " << static_cast<int>(decision.move) << ", why "
         << static_cast<int>(decision.why);
}

namespace test {
namespace {

// Answers the questions of the rule and counts them.
struct Told {
    Schedule in = Schedule::kCanonical;
    bool holds = false;
    bool posts = false;  // let an actor run
    Commands waiting = Commands::kNone;
    bool event = true;
    Coming comes = Coming::kNobody;
    bool sleeps = false;
    bool spins = false;

    int looks = 0;
    int takes = 0;
    int looks_at_coming = 0;

    [[nodiscard]] Schedule schedule() const { return in; }
    bool someone_holds() {
        ++looks;
        return holds;
    }
    bool take_posts() {
        ++takes;
        return posts;
    }
    [[nodiscard]] Commands commands() const { return waiting; }
    [[nodiscard]] bool event_is_left() const { return event; }
    Coming coming() {
        ++looks_at_coming;
        return comes;
    }
    [[nodiscard]] bool someone_sleeps_for_time() const {
        return sleeps || (looks_at_coming > 0 && comes == Coming::kSleepForTime);
    }
    [[nodiscard]] bool spinner_may_compute() const { return spins; }
    [[nodiscard]] bool is_free() const { return in == Schedule::kFree; }
};

std::vector<Told> everything() {
    std::vector<Told> all;
    for (const Schedule in : {Schedule::kCanonical, Schedule::kFree, Schedule::kSerial}) {
        for (const Coming comes : {Coming::kNobody, Coming::kHolds, Coming::kSleepForTime}) {
            for (const Commands commands :
                 {Commands::kNone, Commands::kCanRun, Commands::kAwaitOthers}) {
                for (unsigned bits = 0; bits < 32; ++bits) {
                    all.push_back({.in = in,
                                   .holds = (bits & 1U) != 0,
                                   .posts = (bits & 2U) != 0,
                                   .waiting = commands,
                                   .event = (bits & 4U) != 0,
                                   .comes = comes,
                                   .sleeps = (bits & 8U) != 0,
                                   .spins = (bits & 16U) != 0});
                }
            }
        }
    }
    return all;
}

// The rows of the README, in order: each is decided by one more question than the row before it.
struct Row {
    Told told;
    Decision decision;
};

const std::vector<Row> kTurns = {
    {{.holds = true, .posts = true, .waiting = Commands::kCanRun},
     {Move::kStand, Why::kSomeoneRuns}},
    {{.posts = true, .waiting = Commands::kCanRun}, {Move::kLookAgain, Why::kSomeoneGoesOn}},
    {{.waiting = Commands::kAwaitOthers}, {Move::kStand, Why::kSomeoneIsExpected}},
    {{.waiting = Commands::kCanRun, .event = false}, {Move::kCommands, Why::kEveryoneWaits}},
    {{.waiting = Commands::kCanRun, .comes = Coming::kHolds},
     {Move::kCommands, Why::kEveryoneWaits}},
    {{.event = false, .comes = Coming::kHolds}, {Move::kDeliver, Why::kEveryoneWaits}},
    {{.event = false, .sleeps = true}, {Move::kDeliver, Why::kEveryoneWaits}},
    {{.comes = Coming::kHolds, .sleeps = true}, {Move::kStand, Why::kSomeoneIsExpected}},
    {{.sleeps = true}, {Move::kWalk, Why::kSomeoneSleepsForTime}},
    {{.comes = Coming::kSleepForTime, .spins = true}, {Move::kWalk, Why::kSomeoneSleepsForTime}},
    {{.spins = true}, {Move::kWalk, Why::kSomeoneMayCompute}},
    {{}, {Move::kJump, Why::kEveryoneWaits}},
};

const std::vector<Row> kFreely = {
    {{.holds = true, .event = false}, {Move::kDeliver, Why::kEveryoneWaits}},
    {{.holds = true, .posts = true}, {Move::kWalk, Why::kSomeoneRuns}},
    {{.posts = true, .comes = Coming::kHolds}, {Move::kWalk, Why::kSomeoneGoesOn}},
    {{.comes = Coming::kHolds, .sleeps = true}, {Move::kWalk, Why::kSomeoneIsExpected}},
    {{.sleeps = true}, {Move::kWalk, Why::kSomeoneSleepsForTime}},
    {{.comes = Coming::kSleepForTime, .spins = true}, {Move::kWalk, Why::kSomeoneSleepsForTime}},
    {{.spins = true}, {Move::kWalk, Why::kSomeoneMayCompute}},
    {{}, {Move::kJump, Why::kEveryoneWaits}},
};

void expect_rows(const std::vector<Row>& rows, Schedule schedule) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        Told told = rows[i].told;
        told.in = schedule;
        EXPECT_EQ(decide(told), rows[i].decision) << "row " << i;
    }
}

TEST(RuleOfTime, InTurn) {
    expect_rows(kTurns, Schedule::kCanonical);
    expect_rows(kTurns, Schedule::kSerial);
}

TEST(RuleOfTime, Freely) {
    expect_rows(kFreely, Schedule::kFree);
}

TEST(RuleOfTime, NeverPassesAnActorThatHolds) {
    for (Told told : everything()) {
        const Move move = decide(told).move;
        if (told.holds) {
            EXPECT_NE(move, Move::kJump);
            EXPECT_TRUE(told.is_free() || move == Move::kStand);
            EXPECT_EQ(told.takes, 0) << "posts are taken when nobody runs";
        }
        if (told.comes == Coming::kHolds) {
            EXPECT_NE(move, Move::kJump);
            EXPECT_TRUE(told.is_free() || move != Move::kWalk);
        }
    }
}

TEST(RuleOfTime, NeverStandsWhileAllWaitAndSomethingIsDue) {
    for (Told told : everything()) {
        const Decision decision = decide(told);
        if (!told.holds && told.comes != Coming::kHolds && told.waiting != Commands::kAwaitOthers) {
            EXPECT_NE(decision.move, Move::kStand);
        }
        EXPECT_TRUE(decision.move != Move::kStand || !told.is_free());
    }
}

TEST(RuleOfTime, NeverJumpsWhileAThreadSleepsWithATimeLimitOrMayCompute) {
    for (Told told : everything()) {
        const Move move = decide(told).move;
        if (told.sleeps || told.spins || told.comes == Coming::kSleepForTime) {
            EXPECT_NE(move, Move::kJump);
        }
    }
}

TEST(RuleOfTime, MovesOnlyWhereAnEventIsLeft) {
    for (Told told : everything()) {
        const Move move = decide(told).move;
        EXPECT_EQ(move == Move::kDeliver,
                  !told.event && (told.is_free() ||
                                  (!told.holds && !told.posts && told.waiting == Commands::kNone)));
        EXPECT_TRUE(told.event || (move != Move::kWalk && move != Move::kJump));
    }
}

TEST(RuleOfTime, ExecutesCommandsBeforeTimeMoves) {
    for (Told told : everything()) {
        const Move move = decide(told).move;
        if (!told.is_free() && told.waiting != Commands::kNone) {
            EXPECT_TRUE(move == Move::kStand || move == Move::kLookAgain ||
                        move == Move::kCommands);
        }
        EXPECT_TRUE(move != Move::kCommands || told.waiting == Commands::kCanRun);
        EXPECT_TRUE(!told.is_free() || move != Move::kCommands)
            << "commands are executed as they arrive";
    }
}

TEST(RuleOfTime, AsksNoMoreThanNecessary) {
    for (Told told : everything()) {
        decide(told);
        EXPECT_LE(told.looks, 1);
        EXPECT_TRUE(told.looks == 1 || (told.is_free() && !told.event));
        EXPECT_TRUE(told.looks_at_coming == 0 ||
                    (told.event && !told.holds && !told.posts &&
                     (told.is_free() || told.waiting == Commands::kNone)));
    }
}

TEST(RuleOfTime, JudgesByWhereabouts) {
    EXPECT_EQ(judge(Whereabouts::kOwnCode), Hold::kHolds) << "until its thread is looked at";
    EXPECT_EQ(judge(Whereabouts::kEntering), Hold::kHolds);
    EXPECT_EQ(judge(Whereabouts::kStarting), Hold::kHolds);
    EXPECT_EQ(judge(Whereabouts::kWaiting), Hold::kPasses);
    EXPECT_EQ(judge(Whereabouts::kCommanding), Hold::kPasses);
    EXPECT_EQ(judge(Whereabouts::kJoining), Hold::kPasses);
    EXPECT_EQ(judge(Whereabouts::kStopped), Hold::kPasses);
    EXPECT_EQ(judge(Whereabouts::kNeverStarted), Hold::kPasses);
    EXPECT_EQ(judge(Whereabouts::kEnded), Hold::kPasses);
}

TEST(RuleOfTime, JudgesByThreadState) {
    for (const bool may_come : {false, true}) {
        EXPECT_EQ(judge(ThreadState::kRuns, may_come), Hold::kHolds);
        EXPECT_EQ(judge(ThreadState::kAsleep, may_come), Hold::kPasses);
        EXPECT_EQ(judge(ThreadState::kAsleepForTime, may_come), Hold::kPassesForTime);
        EXPECT_EQ(judge(ThreadState::kEnded, may_come), Hold::kHolds) << "this once";
    }
    EXPECT_EQ(judge(ThreadState::kSpins, true), Hold::kPassesSpinning);
    EXPECT_EQ(judge(ThreadState::kSpins, false), Hold::kHolds) << "it computes";
}

// Defects of the past.

TEST(RuleOfTimeDefects, TimeJumpedBeforeACreatedThreadHadStarted) {
    Told told{.holds = judge(Whereabouts::kStarting) == Hold::kHolds};
    EXPECT_EQ(decide(told).move, Move::kStand);
}

TEST(RuleOfTimeDefects, TimeJumpedBeforeAProgramHadAttached) {
    Told told{.comes = Coming::kHolds};
    EXPECT_EQ(decide(told).move, Move::kStand);
}

TEST(RuleOfTimeDefects, TimeJumpedWhileAProgramSleptBeforeItAttached) {
    Told told{.in = Schedule::kFree, .comes = Coming::kSleepForTime};
    EXPECT_EQ(decide(told).move, Move::kWalk);
}

TEST(RuleOfTimeDefects, ASpinningThreadHeldTimeThoughAPostWasQueued) {
    EXPECT_EQ(judge(ThreadState::kSpins, /*something_may_come=*/true), Hold::kPassesSpinning);
}

TEST(RuleOfTimeDefects, PeersOfAThreadThatComputedForLongRanIntoTheirTimeLimits) {
    for (const Schedule in : {Schedule::kCanonical, Schedule::kFree}) {
        Told told{.in = in, .spins = true};
        EXPECT_EQ(decide(told).move, Move::kWalk);
    }
}

TEST(RuleOfTimeDefects, TimePassedAThreadThatJoinedOneThatHadJustEnded) {
    EXPECT_EQ(judge(ThreadState::kEnded, true), Hold::kHolds);
    EXPECT_EQ(judge(Whereabouts::kEnded), Hold::kPasses);
}

TEST(RuleOfTimeDefects, PollsDidNotReturnWhileThreadsWereExpected) {
    Told told{.event = false, .comes = Coming::kHolds};
    EXPECT_EQ(decide(told).move, Move::kDeliver);
}

}  // namespace
}  // namespace test
}  // namespace simverbs
