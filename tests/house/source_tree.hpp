// The files of the repository as text, for rules that are about text. Knows nothing of C++ beyond
// how a comment and a string literal begin and end.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace simverbs::house {

struct SourceFile {
    std::string path;  // relative to the root, with '/'
    std::vector<std::string> lines;
    std::vector<std::string> code;  // the same lines without // comments and string contents

    [[nodiscard]] std::string_view folder() const;
    [[nodiscard]] std::string_view name() const;
    [[nodiscard]] bool is_cpp() const;  // .c .h .cpp .hpp
};

using SourceTree = std::vector<SourceFile>;

[[nodiscard]] SourceFile make_file(std::string path, std::string_view text);
// Everything under `root` but build folders, hidden folders and binary files.
[[nodiscard]] SourceTree read_tree(const std::filesystem::path& root);

}  // namespace simverbs::house
