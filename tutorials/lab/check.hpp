// `simverbs lab check`: a student's file compiled, run, judged and drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutorials/lab/attempt.hpp"
#include "tutorials/lab/exercise.hpp"

namespace simverbs::lab {

struct Checked {
    bool compiled = false;
    std::string complaints;  // of the compiler; warnings too
    Performance performance;
    std::vector<Finding> findings;      // as the rubric's rules; empty where nothing ran
    std::vector<std::string> pictures;  // files
    std::string picture_error;

    [[nodiscard]] std::uint64_t points(const Rubric& rubric) const;
    [[nodiscard]] bool passed(const Rubric& rubric) const {
        return compiled && points(rubric) == rubric.points();
    }
    // "compiles" or the name of the first rule that does not hold; "" when all do.
    [[nodiscard]] std::string first_failing(const Rubric& rubric) const;
};

// `file` is an exercise.c or exercise.py by its ending; pictures go to the folder `pictures`, none
// where it is "". Throws std::system_error when no process or temporary folder can be made.
Checked check(const Exercise& exercise, const Toolbox& toolbox, const std::string& file,
              const std::string& pictures);

// What the student reads.
std::string report(const Exercise& exercise, const Checked& checked);

// The starter fails, the solution passes, and each wrong answer is named by its rule. A line each;
// `failed` counts those that are not as they should be.
std::string prove(const Exercise& exercise, const Toolbox& toolbox, bool with_wrong,
                  std::size_t& failed);

}  // namespace simverbs::lab
