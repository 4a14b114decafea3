// Finds what may stand at the end of a begun command line, from the structure that CLI11
// parses by: commands, options, values.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace simverbs::cli {

struct Candidate {
    std::string word;  // the whole word; with '=', ':' or '/' at its end it goes on
    std::string meaning{};
};

// The kinds of words that the shell itself knows.
enum class ShellWords { kNone, kFiles, kFolders, kCommands };

struct Candidates {
    std::vector<Candidate> words{};
    ShellWords others = ShellWords::kNone;
};

// `words` are those behind the name of the command `app`; the last one has been begun and may be
// empty.
Candidates find_candidates(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace simverbs::cli
