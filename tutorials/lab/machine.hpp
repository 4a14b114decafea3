// Tells what the machine lacks from mistakes of students: a compiler, the headers of verbs,
// pyverbs, space.
#pragma once

#include <string>

#include "fabric/core/outcome.hpp"

#include "tutorials/lab/attempt.hpp"
#include "tutorials/lab/rubric.hpp"

namespace simverbs::lab {

constexpr const char* kPython = "/usr/bin/python3";  // Debian's, which has pyverbs

// Returns the first error of the compiler or the linker, without the folder of the file; of Python,
// whose last line names the error, the line before it.
std::string first_error(Language language, const std::string& complaints);

// Fails when little space is left where temporary files are.
fabric::Outcome<void> require_space();

// Says why the system did not start the compiler, an answer or Python.
std::string why_not_started(const std::string& program, const Ending& ending);

// Called where no program came of an answer: fails when none comes of one that does nothing. Uses
// `folder` for it.
fabric::Outcome<void> require_compiler(const Toolbox& toolbox, const Rubric& rubric,
                                       const std::string& folder);

// Called where an answer found no pyverbs: fails when there is none.
fabric::Outcome<void> require_pyverbs(const Environment& environment);

}  // namespace simverbs::lab
