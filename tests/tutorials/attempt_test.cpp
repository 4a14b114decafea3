#include "tutorials/lab/attempt.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <unistd.h>

namespace simverbs::lab {
namespace {

using namespace std::chrono_literals;

Finished shell(const std::string& script, std::chrono::milliseconds limit = 20s) {
    return run(
        {.words = {"/bin/sh", "-c", script}, .environment = {{"NAME", "value"}}, .limit = limit});
}

TEST(Attempt, OutputStatusAndEnvironment) {
    setenv("SIMVERBS_SEED", "of somebody else", 1);
    const Finished finished = shell("echo out $NAME $SIMVERBS_SEED; echo err >&2; exit 3");
    unsetenv("SIMVERBS_SEED");
    EXPECT_EQ(finished.output, "out value\n");
    EXPECT_EQ(finished.errors, "err\n");
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kExited);
    EXPECT_EQ(finished.ending.number, 3);
}

// The folder is the student's.
TEST(Attempt, ACrashLeavesNoCore) {
    EXPECT_EQ(shell("ulimit -c").output, "0\n");
}

TEST(Attempt, AMistakeDoesNotStopTheMachine) {
    EXPECT_THAT(shell("ulimit -f").output, testing::Not("unlimited\n"));  // blocks of a file
    EXPECT_THAT(shell("ulimit -p").output, testing::Not("unlimited\n"));  // processes
    EXPECT_EQ(shell("cat /proc/self/oom_score_adj").output, "1000\n");
}

TEST(Attempt, ACrashIsNamed) {
    const Finished finished = shell("kill -SEGV $$");
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kKilledBySignal);
    EXPECT_EQ(finished.ending.number, SIGSEGV);
}

TEST(Attempt, AProgramThatWaitsWaitsInVain) {
    EXPECT_EQ(shell("sleep 60 & wait", 500ms).ending.kind, Ending::Kind::kStuck);
}

TEST(Attempt, AProgramThatSleepsIsAsleep) {
    EXPECT_EQ(shell("exec sleep 60", 500ms).ending.kind, Ending::Kind::kAsleep);
}

TEST(Attempt, AProgramThatHangsIsKilled) {
    const auto begin = std::chrono::steady_clock::now();
    const Finished finished = shell(
        "trap 'echo \"simverbs: asked for, at 0 ps\" >&2' USR2; echo before; "
        "while true; do :; done",
        300ms);
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kTimedOut);
    EXPECT_EQ(finished.output, "before\n");
    EXPECT_THAT(finished.errors, testing::HasSubstr("asked for"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
}

TEST(Attempt, AProgramThatGoesNowhereIsNotWaitedFor) {
    const Finished finished =
        shell("echo 'simverbs: everyone waits and no event is left, at 0 ps' >&2; exec sleep 60");
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kStuck);
}

TEST(Attempt, AProgramThatIsStoppedMaySayWhereItIs) {
    const Finished finished =
        shell("trap 'echo here >&2; exit 1' ABRT; while true; do :; done", 300ms);
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kTimedOut);
    EXPECT_EQ(finished.errors, "here\n");
}

TEST(Attempt, WhoeverAskedMayInterrupt) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    const Finished finished =
        run({.words = {"/bin/sleep", "60"}, .limit = 20s, .interruption = ends[0]});
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kInterrupted);
    close(ends[0]);
    close(ends[1]);
}

TEST(Attempt, EndlessOutputIsCutOff) {
    const Finished finished = shell("while true; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", 1s);
    EXPECT_NE(finished.ending.kind, Ending::Kind::kExited);
    EXPECT_LE(finished.output.size(), std::size_t{1} << 20);
}

TEST(Attempt, WhatCannotBeStartedSaysSo) {
    const Finished finished = run({.words = {"/nowhere/to/be/found"}});
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kNotStarted);
    EXPECT_EQ(finished.ending.number, ENOENT);
}

// Waits for a process to be gone.
bool is_gone(const std::string& process) {
    for (int i = 0; i < 200; ++i) {
        if (kill(std::stoi(process), 0) != 0) {
            return true;
        }
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

TEST(Attempt, AProgramThatKillsItsParentEndsItselfOnly) {
    const Finished finished = shell("echo out; kill -KILL $PPID; sleep 60");
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kKilledSupervisor);
    EXPECT_EQ(finished.output, "out\n");
}

TEST(Attempt, AParentTakesNoOtherSignal) {
    const Finished finished = shell("kill -TERM $PPID; kill -INT 0; echo out");
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kKilledBySignal);
    EXPECT_EQ(shell("kill -TERM $PPID; kill -HUP $PPID; exit 4").ending.number, 4);
}

TEST(Attempt, DaemonsEndWithTheProgram) {
    const Finished finished = shell("setsid sh -c 'echo $$; exec sleep 60' & sleep 0.3");
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kExited);
    EXPECT_TRUE(is_gone(finished.output));
}

TEST(Attempt, DaemonsOfAProgramThatIsStoppedEnd) {
    const Finished finished =
        shell("setsid sh -c 'setsid sleep 60 & echo $!; wait' & exec sleep 60", 500ms);
    EXPECT_EQ(finished.ending.kind, Ending::Kind::kAsleep);
    EXPECT_TRUE(is_gone(finished.output));
}

}  // namespace
}  // namespace simverbs::lab
