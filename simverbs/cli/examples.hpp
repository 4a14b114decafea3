// The example at the end of each --help.
#pragma once

#include <CLI/CLI.hpp>

namespace simverbs::cli {

// Gives `app` and all commands below it their examples.
void add_examples(CLI::App& app);

}  // namespace simverbs::cli
