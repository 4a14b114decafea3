#include "tutorials/lab/prove.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "fabric/core/temporary_folder.hpp"

#include "tutorials/lab/check.hpp"

namespace simverbs::lab {
namespace {

using namespace std::chrono_literals;

// For a program that never ends, to come to where it never ends.
constexpr std::chrono::milliseconds kEnoughToHang = 3s;

// Lines of a report are wrapped.
std::string in_one_line(const std::string& text) {
    std::istringstream words(text);
    std::string line;
    for (std::string word; words >> word;) {
        line += (line.empty() ? "" : " ") + word;
    }
    return line;
}

struct Expected {
    std::string fails;  // "" for nothing, "*" for any rule or diagnosis
    std::string says;
    bool earns_nothing = false;
};

// Returns the names of the rules that hold.
std::string rules_kept(const Exercise& exercise, const Checked& checked) {
    std::string names;
    for (std::size_t i = 0; i < checked.findings.size(); ++i) {
        if (checked.findings[i].holds) {
            names += (names.empty() ? "" : ", ") + exercise.rubric.rules[i].name;
        }
    }
    return names;
}

class Prover {
  public:
    Prover(const Exercise& exercise, const Toolbox& toolbox)
        : exercise_(exercise), toolbox_(toolbox) {}

    void try_out(std::string_view what, const std::string& file, const Expected& expected) {
        Toolbox toolbox = toolbox_;
        if (expected.fails == kTimesOut) {
            toolbox.time_limit = std::min(kEnoughToHang, exercise_.rubric.time_limit);
        }
        const fabric::Outcome<Checked> outcome = check(exercise_, toolbox, file, "");
        if (!outcome) {
            proof_.obstacle = outcome.error();
            return;
        }
        const Checked& checked = *outcome;
        proof_.is_interrupted = proof_.is_interrupted || checked.is_interrupted;
        const std::string named = checked.first_failing(exercise_.rubric);
        const std::string told = report(exercise_, checked);
        const bool is_named =
            expected.fails == "*" ? !named.empty() && named != kCompiles : named == expected.fails;
        const bool is_said =
            in_one_line(told).find(in_one_line(expected.says)) != std::string::npos;
        const std::uint64_t points = checked.points(exercise_.rubric);
        const bool is_earned = !expected.earns_nothing || points == 0;
        const bool is_good = is_named && is_said && is_earned;
        proof_.failed += is_good ? 0 : 1;
        proof_.text +=
            fmt::format("{} {}: {} {}", is_good ? "✔ as it should:" : "✘ wrong:", exercise_.name,
                        what, named.empty() ? "passes" : "fails by " + named);
        if (!is_named) {
            proof_.text += fmt::format(" instead of {}",
                                       expected.fails.empty() ? "passing" : "by " + expected.fails);
        } else if (!is_said) {
            proof_.text += fmt::format(" and does not say: {}", expected.says);
        } else if (!is_earned) {
            proof_.text += fmt::format(
                " and earns {} {} as it is, by {}; a rule can be open "
                "`once` another holds",
                points, points == 1 ? "point" : "points", rules_kept(exercise_, checked));
        }
        proof_.text += is_good ? "\n" : "\n" + told + "\n";
    }

    void try_out(const WrongAnswer& answer) {
        const fabric::TemporaryFolder folder("simverbs-lab-");
        const std::string file = folder.file("exercise" + std::string(ending_of(answer.language)));
        const auto changed = text_of(exercise_, answer);
        if (!changed || !write_file(file, *changed)) {
            ++proof_.failed;
            proof_.text += fmt::format("✘ wrong: {}: {}\n", exercise_.name,
                                       changed ? file + " cannot be written" : changed.error());
            return;
        }
        try_out(fmt::format("wrong answer {}", answer.name), file,
                {answer.fails, answer.says, false});
    }

    [[nodiscard]] bool is_stopped() const {
        return proof_.is_interrupted || !proof_.obstacle.empty();
    }
    [[nodiscard]] const Proof& proof() const { return proof_; }

  private:
    const Exercise& exercise_;
    const Toolbox& toolbox_;
    Proof proof_;
};

}  // namespace

Proof prove(const Exercise& exercise, const Toolbox& toolbox, bool with_wrong) {
    Prover prover(exercise, toolbox);
    for (const Language language : {Language::kC, Language::kPython}) {
        if (exercise.has(language) && !prover.is_stopped()) {
            const std::string_view ending = ending_of(language);
            prover.try_out(fmt::format("exercise{}", ending), exercise.file("exercise", language),
                           {"*", "", true});
            prover.try_out(fmt::format("solution{}", ending), exercise.file("solution", language),
                           Expected{});
        }
    }
    for (const WrongAnswer& answer : exercise.wrong) {
        if (with_wrong && !prover.is_stopped()) {
            prover.try_out(answer);
        }
    }
    return prover.proof();
}

}  // namespace simverbs::lab
