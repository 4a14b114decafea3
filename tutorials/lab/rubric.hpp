// A rubric: how an exercise is run, what must have happened, and what a teacher says when it did
// not. Read strictly: what is wrong with a file is named by line and column.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/yaml/value.hpp"

#include "tutorials/lab/pattern.hpp"

namespace simverbs::lab {

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

// What the program printed, on stdout or stderr, matches, or, turned round, does not.
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
    std::string say;   // why it does not, in a teacher's words
    std::string hint;  // "": none
    std::uint64_t points = 1;
};

enum class Picture : std::uint8_t { kLadder, kStates, kTimeline, kTopology };

struct Rubric {
    std::string title;
    std::string topology = "star:2";
    std::vector<std::pair<std::string, std::string>> environment;
    std::chrono::milliseconds time_limit{20'000};  // of wall time
    std::vector<Picture> pictures;
    std::vector<std::string> hints;
    std::vector<Rule> rules;

    [[nodiscard]] std::uint64_t points() const;
};

std::optional<Rubric> read_rubric(std::string_view text, fabric::yaml::Errors& errors);

// Every key, for people who write rubrics.
std::string rubric_reference();

// A wrong answer that students give: the solution with some of its text changed.
struct WrongAnswer {
    std::string name;
    std::string story;  // what the student thought
    std::string fails;  // the rule that names it
    bool is_python = false;
    std::vector<std::pair<std::string, std::string>> changes;  // text that stands there once; by
};

std::optional<std::vector<WrongAnswer>> read_wrong_answers(std::string_view text,
                                                           const Rubric& rubric,
                                                           fabric::yaml::Errors& errors);

}  // namespace simverbs::lab
