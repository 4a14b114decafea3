// `simverbs lab check`: a student's file compiled, run, judged and drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/outcome.hpp"

#include "tutorials/lab/attempt.hpp"
#include "tutorials/lab/diagnosis.hpp"
#include "tutorials/lab/exercise.hpp"
#include "tutorials/lab/pictures.hpp"

namespace simverbs::lab {

struct Checked {
    Language language = Language::kC;
    bool has_every_hint = false;  // the student asked for all: advice may be told
    bool is_interrupted = false;
    bool compiled = false;
    std::string complaints;  // of the compiler; warnings too
    Performance performance;
    std::vector<Finding> findings;      // as the rubric's rules; empty where nothing ran
    std::optional<std::string> ending;  // when it did not end well
    std::vector<Diagnosis> diagnoses;   // when it did not pass
    Drawn drawn;

    [[nodiscard]] std::uint64_t points(const Rubric& rubric) const;
    [[nodiscard]] bool passed(const Rubric& rubric) const {
        return compiled && points(rubric) == rubric.points();
    }
    // The first that does not hold, open ones aside.
    [[nodiscard]] std::optional<std::size_t> first_failing_rule() const;
    // "compiles", the name of a diagnosis or that of the rule; "" when all hold.
    [[nodiscard]] std::string first_failing(const Rubric& rubric) const;
    // Tells the event or the output that made it fail; the first error where it does not compile.
    [[nodiscard]] std::string seen_first() const;
};

// `file` is an exercise.c or exercise.py by its ending; pictures go to the folder `pictures`, none
// where it is "". Fails where the machine is in the way: it has no compiler, headers, pyverbs,
// space or process for it.
fabric::Outcome<Checked> check(const Exercise& exercise, const Toolbox& toolbox,
                               const std::string& file, const std::string& pictures);

// Returns the report for the student. Advice ("Try") comes only after the last hint.
std::string report(const Exercise& exercise, const Checked& checked);

}  // namespace simverbs::lab
