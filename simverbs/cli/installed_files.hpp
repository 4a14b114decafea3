// Files that came with the command: scenarios and topologies by the paths that documents give them,
// exercises.
#pragma once

#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

namespace simverbs::cli {

// The folder of that name among what came with the command, as built and as installed.
std::filesystem::path installed_folder(const std::filesystem::path& name);

// Returns the installed file that `scenarios/library/x.yaml` or `scenarios/topologies/x.yaml` names
// in a folder that has no such file itself; else the word as it is.
std::string find_installed_file(const std::string& word);

// Lets such words name files that are installed.
void take_installed_files(CLI::Option& option);

}  // namespace simverbs::cli
