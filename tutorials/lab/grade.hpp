// `simverbs lab grade`: a class, a row of a CSV file for each student and exercise.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tutorials/lab/attempt.hpp"

namespace simverbs::lab {

struct GradeOptions {
    std::string folder;     // FOLDER/STUDENT/NN_name/exercise.c
    std::string exercises;  // where they lie
    std::string exercise;   // "": all that some student has
    unsigned jobs = 1;
};

// The CSV: student, exercise, points, of, first failing rule, seen. What is not handed in has no
// points. Nothing, with `error`, when there is no student or a rubric cannot be read.
std::optional<std::string> grade(const GradeOptions& options, const Toolbox& toolbox,
                                 std::string& error);

}  // namespace simverbs::lab
