// Programs that start and yet find no simulated device, since the loader (ld.so) does not take our
// libibverbs.so.1 for them: static ones, those in secure-execution mode, 32-bit ones, and those
// whose DT_RPATH names another library. Only looks at files; says nothing where it cannot tell.
#pragma once

#include <string>
#include <vector>

namespace simverbs::cli {

// Returns why the program that execvp() would start by these words finds no device, and what to do
// about it: a sentence without its full stop. "": it does, or cannot be looked at. Of a script the
// interpreter is looked at, of `sh -c COMMAND` also the first word of COMMAND.
std::string why_unreachable(const std::vector<std::string>& words);

// Returns the program that a shell starts first for this command; "" where that is not a plain
// word.
std::string first_program(const std::string& command);

}  // namespace simverbs::cli
