// `simverbs lab grade`: a class, a row of a CSV file for each student and exercise.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fabric/core/outcome.hpp"

#include "tutorials/lab/attempt.hpp"

namespace simverbs::lab {

struct GradeOptions {
    std::string folder;     // FOLDER/STUDENT/NN_name/exercise.c
    std::string exercises;  // where they lie
    std::string exercise;   // "": all that some student has
    unsigned jobs = 1;
};

struct Grades {
    // Student, exercise, points, of, first failing rule, seen. What is not handed in has no points.
    std::string csv;
    std::vector<std::string> warnings;  // folders of students that are no exercise's
    std::size_t ungraded = 0;           // rows that an interruption left out
};

// Fails when there is no student, or a rubric cannot be read.
fabric::Outcome<Grades> grade(const GradeOptions& options, const Toolbox& toolbox);

}  // namespace simverbs::lab
