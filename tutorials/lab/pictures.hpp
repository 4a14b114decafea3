// The pictures of a check, beside the answer.
#pragma once

#include <string>
#include <vector>

#include "tutorials/lab/judge.hpp"
#include "tutorials/lab/rubric.hpp"

namespace simverbs::lab {

struct Drawn {
    std::vector<std::string> files;
    std::string error;  // the first thing that was in the way, or ""
};

// Draws those of the rubric in `folder`, from a trace that may be empty. Removes those of an
// earlier check: what stands beside an answer is of its last run.
Drawn draw(const Rubric& rubric, const Performance& performance, const std::string& folder);

}  // namespace simverbs::lab
