// Reading the tree. A block comment is taken for code: the rules' words hardly occur in one.
#include "tests/house/source_tree.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace simverbs::house {

namespace {

namespace fs = std::filesystem;

std::string without_comment_and_strings(std::string_view line) {
    std::string code;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote != 0) {
            if (c == '\\') {
                ++i;
            } else if (c == quote) {
                quote = 0;
                code += c;
            }
        } else if (line.substr(i, 2) == "//") {
            break;
        } else {
            // 1'000 is a number, not a character.
            const bool separator = c == '\'' && i > 0 && std::isalnum(line[i - 1]) != 0;
            quote = (c == '"' || c == '\'') && !separator ? c : quote;
            code += c;
        }
    }
    return code;
}

bool is_include(std::string_view line) {
    return line.starts_with("#include") || line.starts_with("# include");
}

bool is_skipped_folder(const fs::path& path) {
    const std::string name = path.filename().string();
    return name == "build" || (name.starts_with('.') && name != ".ci");
}

bool is_text(const fs::path& path) {
    static const std::set<std::string> kBinary = {".png", ".svg", ".pcap", ".gz", ".bin"};
    return !kBinary.contains(path.extension().string());
}

}  // namespace

std::string_view SourceFile::folder() const {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string_view{}
                                      : std::string_view(path).substr(0, slash);
}

std::string_view SourceFile::name() const {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : std::string_view(path).substr(slash + 1);
}

bool SourceFile::is_cpp() const {
    return path.ends_with(".cpp") || path.ends_with(".hpp") || path.ends_with(".c") ||
           path.ends_with(".h");
}

SourceFile make_file(std::string path, std::string_view text) {
    SourceFile file{std::move(path), {}, {}};
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        file.lines.emplace_back(line);
        file.code.push_back(is_include(line) ? std::string(line)
                                             : without_comment_and_strings(line));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return file;
}

SourceTree read_tree(const fs::path& root) {
    SourceTree tree;
    for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
        if (entry->is_directory() && is_skipped_folder(entry->path())) {
            entry.disable_recursion_pending();
        } else if (entry->is_regular_file() && is_text(entry->path())) {
            std::ifstream in(entry->path(), std::ios::binary);
            const std::string text((std::istreambuf_iterator<char>(in)), {});
            tree.push_back(make_file(fs::relative(entry->path(), root).generic_string(), text));
        }
    }
    std::ranges::sort(tree, {}, &SourceFile::path);
    return tree;
}

}  // namespace simverbs::house
