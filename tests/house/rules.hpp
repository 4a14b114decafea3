// The house rules: what a reviewer would otherwise have to look for. Each is a function from the
// tree to its violations, so that a test can show it a planted one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tests/house/source_tree.hpp"

namespace simverbs::house {

struct Violation {
    std::string path;
    std::size_t line;  // from 1; 0 when the whole file or folder is meant
    std::string message;
};
using Violations = std::vector<Violation>;

struct Rule {
    const char* name;
    Violations (*check)(const SourceTree& tree);
};

[[nodiscard]] std::span<const Rule> rules();

// rules_includes.cpp: who may include whom (arrows.txt, read from the source tree).
[[nodiscard]] Violations check_arrows(const SourceTree& tree);
[[nodiscard]] Violations check_verbs_header(const SourceTree& tree);
// Finds arrows that no #include needs and folders that are not there, in the whole tree.
[[nodiscard]] Violations find_unused_arrows(const SourceTree& tree);
// Folders of arrows.txt whose README does not say the same: "May include: `a`, `b`."
[[nodiscard]] Violations find_other_arrows_in_readmes(const SourceTree& tree);

// rules_determinism.cpp: what must not be called where virtual time rules.
[[nodiscard]] Violations check_clocks(const SourceTree& tree);
[[nodiscard]] Violations check_randomness(const SourceTree& tree);
[[nodiscard]] Violations check_threads(const SourceTree& tree);
[[nodiscard]] Violations check_environment(const SourceTree& tree);
[[nodiscard]] Violations check_floating_point(const SourceTree& tree);
[[nodiscard]] Violations check_hash_order(const SourceTree& tree);

// rules_functions.cpp: how long a function may be.
[[nodiscard]] Violations check_function_size(const SourceTree& tree);

// rules_readmes.cpp: each folder has a README, which names its files.
[[nodiscard]] Violations check_readmes(const SourceTree& tree);
// Finds sources that tables of READMEs name and that are not there, and sources of the product that
// the README of their folder does not name.
[[nodiscard]] Violations check_named_files(const SourceTree& tree);

// rules_layout.cpp: files, folders and their names.
[[nodiscard]] Violations check_file_size(const SourceTree& tree);
[[nodiscard]] Violations check_line_width(const SourceTree& tree);
[[nodiscard]] Violations check_comments(const SourceTree& tree);
[[nodiscard]] Violations check_names(const SourceTree& tree);
[[nodiscard]] Violations check_top_folder(const SourceTree& tree);
[[nodiscard]] Violations check_dead_files(const SourceTree& tree);
[[nodiscard]] Violations check_headers(const SourceTree& tree);
[[nodiscard]] Violations check_promises(const SourceTree& tree);
[[nodiscard]] Violations check_secrets(const SourceTree& tree);

}  // namespace simverbs::house
