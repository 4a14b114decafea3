#include "tutorials/lab/diagnosis.hpp"

#include <csignal>

#include <gmock/gmock.h>

namespace simverbs::lab {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

Performance ended(Ending::Kind kind, int number, std::string errors = "") {
    Performance performance;
    performance.ending = {kind, number};
    performance.errors = std::move(errors);
    return performance;
}

std::string said_of(const Performance& performance) {
    return ending_text(performance, 2s).value_or("");
}

std::string first_name(const Performance& performance) {
    const auto all = diagnose({}, performance, 2s);
    return all.empty() ? "" : std::string(all.front().name);
}

TEST(Diagnosis, NamesTheSignalAndTheLineOfACrash) {
    Performance performance = ended(Ending::Kind::kKilledBySignal, SIGSEGV);
    EXPECT_EQ(said_of(performance), "It crashed: Segmentation fault (SIGSEGV).");
    EXPECT_EQ(first_name(performance), kCrashes);
    performance.place = Place{"exercise.c", 12, "show"};
    EXPECT_EQ(said_of(performance),
              "It crashed: Segmentation fault (SIGSEGV) at exercise.c line 12, in show().");
    performance.place->null_touched = true;
    EXPECT_THAT(said_of(performance), HasSubstr("NULL"));
}

TEST(Diagnosis, NamesTheLineOfAnEndlessLoop) {
    Performance performance = ended(Ending::Kind::kTimedOut, 0);
    performance.place = Place{"exercise.py", 7, ""};
    EXPECT_EQ(said_of(performance),
              "It did not end: it was stopped after 2 s. It was then at exercise.py line 7.");
    EXPECT_EQ(first_name(performance), kTimesOut);
    performance.ending.kind = Ending::Kind::kStuck;
    EXPECT_THAT(said_of(performance), HasSubstr("waits for something that does not come"));
    performance.ending.kind = Ending::Kind::kAsleep;
    EXPECT_THAT(said_of(performance),
                HasSubstr("it slept by the clock, and was stopped after 2 s"));
    EXPECT_EQ(first_name(performance), "");
}

TEST(Diagnosis, SaysWhyAProgramEndedEarly) {
    Performance performance =
        ended(Ending::Kind::kExited, 1, "noise\ngave up: to RTR (errno: Invalid argument)\n");
    performance.place = Place{"exercise.c", 30, "main", "lab_join"};
    EXPECT_EQ(said_of(performance),
              "It ended early at exercise.c line 30, in main(), in its call of lab_join(), with "
              "status 1: gave up: to RTR (errno: Invalid argument)");
    EXPECT_EQ(said_of(ended(Ending::Kind::kExited, 0)), "");
}

TEST(Diagnosis, AnExceptionIsACrashUnlessAVerbWasRefused) {
    const auto raised = [](const std::string& last_line) {
        const std::string errors =
            "Traceback (most recent call last):\n  File \"/a/exercise.py\", line 3, in <module>\n"
            "    x()\n" +
            last_line + "\n";
        Performance performance = ended(Ending::Kind::kExited, 1, errors);
        performance.ending = ending_of_python(performance.ending, errors);
        performance.place = place_in_python("/nowhere", errors, "/a/exercise.py");
        return performance;
    };
    EXPECT_EQ(said_of(raised("ValueError: no")),
              "It crashed at exercise.py line 3: ValueError: no");
    EXPECT_EQ(first_name(raised("ValueError: no")), kCrashes);
    const std::string refused = "pyverbs.pyverbs_error.PyverbsRDMAError: no. Errno: 22";
    EXPECT_EQ(said_of(raised(refused)),
              "It ended early at exercise.py line 3, with status 1: " + refused);
    EXPECT_EQ(first_name(raised(refused)), "");
    EXPECT_TRUE(is_syntax_error("  File \"/a/x.py\", line 1\n    f(\n     ^\nSyntaxError: x\n"));
    EXPECT_FALSE(is_syntax_error("simverbs: something\n"));
}

TEST(Diagnosis, NamesASkippedState) {
    const auto refused = [](const std::string& move) {
        return ended(Ending::Kind::kExited, 1,
                     "simverbs: ibv_modify_qp refused [0x10001]: " + move +
                         " is no transition of RC (Invalid argument)\n");
    };
    EXPECT_EQ(first_name(refused("RESET to RTR")), kSkipsState);
    EXPECT_THAT(diagnose({}, refused("RESET to RTR"), 2s)[0].text,
                HasSubstr("A state was skipped: ibv_modify_qp() was asked for RESET to RTR"));
    EXPECT_THAT(diagnose({}, refused("ERR to INIT"), 2s)[0].text,
                HasSubstr("no step from ERR to INIT"));
    EXPECT_THAT(diagnose({}, refused("RTS to INIT"), 2s)[0].text,
                HasSubstr("no step from RTS to INIT"));
    const std::string lacks_av =
        "simverbs: ibv_modify_qp refused [0x1]: INIT to RTR lacks AV (Invalid argument)\n";
    EXPECT_EQ(first_name(ended(Ending::Kind::kExited, 1, lacks_av)), "");
}

// The program did not look at what ibv_modify_qp() returned, and went on.
TEST(Diagnosis, AStepThatWasRefusedIsNotSkipped) {
    const std::string lacks_av =
        "simverbs: ibv_modify_qp refused [0x1]: INIT to RTR lacks AV (Invalid argument)\n";
    const std::string next =
        "simverbs: ibv_modify_qp refused [0x1]: INIT to RTS is no transition of RC (Invalid "
        "argument)\n";
    EXPECT_EQ(first_name(ended(Ending::Kind::kExited, 1, lacks_av + next)), "");
    EXPECT_EQ(first_name(ended(Ending::Kind::kExited, 1, next + lacks_av)), kSkipsState);
}

TEST(Diagnosis, NamesAPollThatWasNotRepeated) {
    const auto all = diagnose(
        {}, ended(Ending::Kind::kExited, 0, "simverbs: polled_once: it does not wait [0x3]\n"), 2s);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].name, kPollsOnce);
    EXPECT_THAT(all[0].text, HasSubstr("was polled once, was empty"));
}

TEST(Diagnosis, NamesAFullQueue) {
    EXPECT_THAT(said_of(ended(Ending::Kind::kExited, 1,
                              "gave up: ibv_post_recv (errno: Cannot allocate memory)\n")),
                HasSubstr("The queue is full"));
    EXPECT_THAT(said_of(ended(Ending::Kind::kExited, 1,
                              "gave up: ibv_reg_mr (errno: Cannot allocate memory)\n")),
                Not(HasSubstr("full")));
}

TEST(PythonEnding, TheOwnFramesOfACheckAreNoneOfTheAnswer) {
    const std::string answer = "  File \"/a/exercise.py\", line 3, in show\n    CQ(context, 0)\n";
    const std::string verb = "  File \"cq.pyx\", line 1, in pyverbs.cq.CQ.__init__\nError: no\n";
    EXPECT_EQ(without_frames_of_lab("Traceback:\n" + answer +
                                    "  File \"/t/python/sitecustomize.py\", line 31, in __call__\n"
                                    "    made = make(*arguments, **named)\n"
                                    "           ^^^^^\n" +
                                    verb),
              "Traceback:\n" + answer + verb);
}

// As that of a destructor, when Python throws an object away.
TEST(PythonEnding, AnExceptionThatWasIgnoredEndsNothing) {
    std::vector<std::string> ignored;
    const std::string left = without_ignored_exceptions(
        "before\nException ignored in: 'pyverbs.pd.PD.__dealloc__'\n"
        "Traceback (most recent call last):\n  File \"/a/exercise.py\", line 4, in __del__\n"
        "    1/0\nPyverbsRDMAError: Failed to dealloc PD\nafter\n",
        ignored);
    EXPECT_EQ(left, "before\nafter\n");
    EXPECT_EQ(exception_of(left), "");
    EXPECT_EQ(ignored, std::vector<std::string>{"PyverbsRDMAError: Failed to dealloc PD"});
}

TEST(Diagnosis, NamesAnObjectThatWasDestroyedTwice) {
    Performance performance =
        ended(Ending::Kind::kExited, 0,
              "simverbs: destroyed_twice: refused, a crash [0x10001]: queue pair; called from "
              "/tmp/program+0x12\n");
    performance.second_end = Place{"exercise.c", 12, "main", "", {}};
    const auto all = diagnose({}, performance, 2s);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].name, kDestroysTwice);
    EXPECT_THAT(all[0].text,
                HasSubstr("A queue pair was destroyed twice, the second time at exercise.c line "
                          "12, in main()."));
    EXPECT_FALSE(judge(ExitRule{}, performance).holds);
}

// A rubric that asks for an open device itself says so in its own words.
TEST(Diagnosis, NamesAProgramThatOpensNoDevice) {
    const auto rubric_with = [](const std::string& demand) {
        fabric::yaml::Errors errors("rubric.yaml");
        return read_rubric("title: t\nrules: [{name: r, asks: a, say: s, " + demand + "}]", errors)
            .value();
    };
    const Rubric of_states = rubric_with("count: {of: {state: RTS}}");
    const auto all = diagnose(of_states, ended(Ending::Kind::kExited, 0), 2s);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].name, kOpensNoDevice);
    EXPECT_TRUE(diagnose(of_states, ended(Ending::Kind::kExited, 1), 2s).empty()) << "gave up";
    EXPECT_TRUE(diagnose(rubric_with("output: x"), ended(Ending::Kind::kExited, 0), 2s).empty());
    EXPECT_TRUE(
        diagnose(rubric_with("count: {of: {device: opened}}"), ended(Ending::Kind::kExited, 0), 2s)
            .empty());
}

// innermost first; the last words of a traceback are the other way round.
TEST(Ending, ReadsLinesOfPython) {
    const std::string fault =
        "Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n"
        "  File \"/t/lab.py\", line 9 in wait\n  File \"/a/exercise.py\", line 4 in next\n"
        "  File \"/a/exercise.py\", line 8 in <module>\n";
    const auto hung = place_in_python("/nowhere", fault, "/a/exercise.py");
    ASSERT_TRUE(hung.has_value());
    EXPECT_EQ(text_of(*hung), "exercise.py line 4, in next(), in its call of wait()");
    EXPECT_EQ(callers_of(*hung), ", called in line 8");
    EXPECT_EQ(without_fault_report("said\n" + fault), "said\n");
    const auto thrown = place_in_python("/nowhere",
                                        "Traceback (most recent call last):\n"
                                        "  File \"/a/exercise.py\", line 8, in <module>\n"
                                        "    show()\n"
                                        "  File \"/a/exercise.py\", line 4, in show\n"
                                        "    x\nNameError: name 'x' is not defined\n",
                                        "/a/exercise.py");
    ASSERT_TRUE(thrown.has_value());
    EXPECT_EQ(text_of(*thrown), "exercise.py line 4, in show()");
    EXPECT_FALSE(place_in_python("/nowhere", "", "/a/exercise.py").has_value());
}

}  // namespace
}  // namespace simverbs::lab
