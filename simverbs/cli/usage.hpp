// What is wrong with a command line.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace simverbs::cli {

// A sentence that names the command, the word or option that is wrong and the nearest that there
// is, then where more is said. `app` has parsed the command line as far as it could.
std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace simverbs::cli
