// A rubric: how an exercise is run, what must have happened, and what a teacher says when it did
// not. Read strictly: what is wrong with a file is named by line and column.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/yaml/value.hpp"

#include "tutorials/lab/pattern.hpp"

namespace simverbs::lab {

enum class Language : std::uint8_t { kC, kPython };

constexpr std::string_view ending_of(Language language) {
    return language == Language::kC ? ".c" : ".py";
}
constexpr Language language_of(std::string_view file) {
    return file.ends_with(ending_of(Language::kPython)) ? Language::kPython : Language::kC;
}

// A text in the words of the language in which the answer is written.
struct LocalText {
    std::string c;
    std::string python;

    [[nodiscard]] const std::string& in(Language language) const {
        return language == Language::kC ? c : python;
    }
};

// So many events of that kind.
struct CountRule {
    Pattern of;
    std::uint64_t least = 1;
    std::uint64_t most = UINT64_MAX;
};

// Wherever `before` happens (of each host, of each queue pair, or in the whole run: the first time)
// `first` has happened there already; and `before` does happen.
struct OrderRule {
    enum class Each : std::uint8_t { kRun, kHost, kQp };
    Pattern first;
    Pattern before;
    Each each = Each::kRun;
};

// From the first `from` to the first `to` behind it passes so much virtual time.
struct BetweenRule {
    Pattern from;
    Pattern to;
    fabric::SimDuration least{};
    fabric::SimDuration most = fabric::SimDuration::max();
};

// As many of one as of the other.
struct BalanceRule {
    Pattern of;
    Pattern as;
};

// Everything of these kinds that was made was ended again: "qp", "cq", "mr", ...
struct ClosedRule {
    std::vector<std::string> kinds;
};

// The output of the program, on stdout or stderr, matches, or, turned round, does not.
struct OutputRule {
    std::string text;
    std::regex expression;
    bool never = false;
};

// The program ends by itself and says that it went well.
struct ExitRule {};

using Demand =
    std::variant<CountRule, OrderRule, BetweenRule, BalanceRule, ClosedRule, OutputRule, ExitRule>;

struct Rule {
    std::string name;
    std::string asks;  // what must hold: a line of the report
    Demand demand;
    LocalText say;   // why it does not, in a teacher's words
    LocalText hint;  // what to try; "": none
    // The rule is open until one of these holds; empty: see judge().
    std::vector<std::string> once;
    std::uint64_t points = 1;
};

enum class Picture : std::uint8_t { kLadder, kStates, kTimeline, kTopology };

struct Rubric {
    std::string title;
    std::string topology = "star:2";
    std::vector<std::pair<std::string, std::string>> environment;
    std::chrono::milliseconds time_limit{10'000};  // of wall time
    bool uses_rdma_cm = false;                     // answers in C are linked to librdmacm
    std::vector<Picture> pictures;
    std::vector<LocalText> hints;
    std::vector<Rule> rules;

    [[nodiscard]] std::uint64_t points() const;
};

// Diagnoses that are named before all rules: that it does not compile, and what diagnosis.hpp finds
// out.
inline constexpr std::string_view kCompiles = "compiles";
inline constexpr std::string_view kCrashes = "crashes";
inline constexpr std::string_view kTimesOut = "times_out";
inline constexpr std::string_view kSkipsState = "skips_a_state";
inline constexpr std::string_view kPollsOnce = "polls_once";
inline constexpr std::string_view kDestroysTwice = "destroys_twice";
inline constexpr std::string_view kOverflowsQueue = "overflows_a_queue";
inline constexpr std::string_view kOpensNoDevice = "opens_no_device";
inline constexpr std::array kDiagnosisNames{
    kCrashes, kTimesOut, kSkipsState, kPollsOnce, kDestroysTwice, kOverflowsQueue, kOpensNoDevice};

std::optional<Rubric> read_rubric(std::string_view text, fabric::yaml::Errors& errors);

// Every key, for people who write rubrics.
std::string rubric_reference();

// A wrong answer that students give: the solution with some of its text changed.
struct WrongAnswer {
    std::string name;
    std::string story;  // what the student thought
    std::string fails;  // the rule or diagnosis that names it
    std::string says;   // what the report has to say, "": only that
    Language language = Language::kC;
    std::vector<std::pair<std::string, std::string>> changes;  // text that stands there once; by
};

std::optional<std::vector<WrongAnswer>> read_wrong_answers(std::string_view text,
                                                           const Rubric& rubric,
                                                           fabric::yaml::Errors& errors);

}  // namespace simverbs::lab
