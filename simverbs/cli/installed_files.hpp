// Scenarios and topologies that came with the command, by the paths that documents give them.
#pragma once

#include <CLI/CLI.hpp>

namespace simverbs::cli {

// Lets `scenarios/library/x.yaml` and `scenarios/topologies/x.yaml` name files that are installed
// with the command, in folders that have no such file themselves.
void take_installed_files(CLI::Option& option);

}  // namespace simverbs::cli
