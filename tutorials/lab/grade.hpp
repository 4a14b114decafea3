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
    // "": all that some student has; else it may lie in FOLDER/STUDENT/exercise.c as well.
    std::string exercise;
    unsigned jobs = 1;
};

struct Grades {
    // Student, exercise, points, of, first failing rule, seen. What is not handed in has no points.
    std::string csv;
    std::vector<std::string> warnings;  // what is not graded, for its name or place
    // Why answers could not be judged, and which: they have no row. Not their fault.
    std::vector<std::string> obstacles;
    std::size_t ungraded = 0;  // rows that are left out
};

// Fails when there is no student, or a rubric cannot be read.
fabric::Outcome<Grades> grade(const GradeOptions& options, const Toolbox& toolbox);

}  // namespace simverbs::lab
