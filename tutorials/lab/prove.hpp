// `simverbs lab prove`: whether an exercise is sound.
#pragma once

#include <cstddef>
#include <string>

#include "tutorials/lab/attempt.hpp"
#include "tutorials/lab/exercise.hpp"

namespace simverbs::lab {

struct Proof {
    std::string text;        // a line each
    std::size_t failed = 0;  // those that are not as they should be
    bool is_interrupted = false;
    std::string obstacle;  // why the machine could not go on; "": it could
};

// The starter fails and earns no points, the solution passes, and each wrong answer is named by its
// rule or diagnosis, in the words that it expects. Answers that never end get a few seconds only.
Proof prove(const Exercise& exercise, const Toolbox& toolbox, bool with_wrong);

}  // namespace simverbs::lab
