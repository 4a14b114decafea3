// The words of a program at the end of a command line. They are taken away before the options of
// simverbs are read, so that none of the program's options is taken for one of simverbs.
#pragma once

#include <string>
#include <vector>

namespace simverbs::cli {

// Takes the words behind `--` of `check`, `doctor` and `complete`, of `on` what follows the host,
// and of `exec` what follows the options (both with or without `--`), as env(1) and ssh(1) do.
// Empty: there is no program.
std::vector<std::string> take_program(int& argc, char** argv);

}  // namespace simverbs::cli
