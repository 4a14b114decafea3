// Explains errors of a command line.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace simverbs::cli {

// Returns a sentence that names the command, the wrong word or option and the nearest valid one,
// and a reference to --help. `app` has thrown `error` while it parsed the command line.
std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace simverbs::cli
