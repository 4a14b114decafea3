// Files, folders and names: small, documented, built, and none called after what it is not.
#include <algorithm>
#include <array>
#include <set>

#include "tests/house/rules.hpp"

namespace simverbs::house {

namespace {

constexpr std::size_t kLinesAFile = 500;
constexpr std::size_t kColumnsALine = 100;

bool is_script(const SourceFile& file) {
    return !file.lines.empty() && file.lines.front().starts_with("#!");
}

// Columns, not bytes: a UTF-8 continuation byte takes none.
std::size_t width_of(std::string_view line) {
    return static_cast<std::size_t>(
        std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }));
}

Violations find_text(const SourceTree& tree, std::span<const std::string> needles,
                     std::string_view why) {
    Violations found;
    for (const SourceFile& file : tree) {
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            for (const std::string& needle : needles) {
                if (file.lines[i].find(needle) != std::string::npos) {
                    found.push_back({file.path, i + 1, needle + ": " + std::string(why)});
                }
            }
        }
    }
    return found;
}

}  // namespace

Violations check_file_size(const SourceTree& tree) {
    Violations found;
    for (const SourceFile& file : tree) {
        if ((file.is_cpp() || is_script(file)) && file.lines.size() > kLinesAFile) {
            found.push_back({file.path, 0, std::to_string(file.lines.size()) + " lines"});
        }
    }
    return found;
}

// Tables that clang-format is told to leave alone may be wider.
Violations check_line_width(const SourceTree& tree) {
    Violations found;
    for (const SourceFile& file : tree) {
        bool table = false;
        for (std::size_t i = 0; (file.is_cpp() || is_script(file)) && i < file.lines.size(); ++i) {
            const std::string& line = file.lines[i];
            table = (table || line.find("clang-format off") != std::string::npos) &&
                    line.find("clang-format on") == std::string::npos;
            if (!table && width_of(line) > kColumnsALine) {
                found.push_back({file.path, i + 1, "wider than 100 columns"});
            }
        }
    }
    return found;
}

// A comment says what a thing is or does: it begins with a verb or its subject.
Violations check_comments(const SourceTree& tree) {
    constexpr auto kBeginnings =
        std::to_array<std::string_view>({"// Of ", "/* Of ", "// What ", "/* What ", "// Whether ",
                                         "/* Whether ", "// As it happens"});
    Violations found;
    for (const SourceFile& file : tree) {
        bool is_inside = false;  // of a comment that has begun in an earlier line
        for (std::size_t i = 0; file.is_cpp() && i < file.lines.size(); ++i) {
            const std::string_view line = file.lines[i];
            const std::size_t begin = line.find_first_not_of(' ');
            const std::string_view text =
                begin == std::string_view::npos ? std::string_view() : line.substr(begin);
            if (!is_inside && std::ranges::any_of(kBeginnings, [text](std::string_view beginning) {
                    return text.starts_with(beginning);
                })) {
                found.push_back({file.path, i + 1, "begin with a verb or the subject"});
            }
            is_inside = text.starts_with("//");
        }
    }
    return found;
}

Violations check_names(const SourceTree& tree) {
    static const std::set<std::string, std::less<>> kBanned = {
        "util", "utils", "common", "commons", "helper", "helpers", "misc", "stuff", "manager"};
    Violations found;
    for (const SourceFile& file : tree) {
        std::string word;
        for (const char c : file.path + "/") {
            if (c != '/' && c != '_' && c != '.' && c != '-') {
                word += c;
                continue;
            }
            if (kBanned.contains(word)) {
                found.push_back(
                    {file.path, 0, word + ": a thing without a home is a missing concept"});
            }
            word.clear();
        }
    }
    return found;
}

// A newcomer reads the top folder first. The last one is a build folder's, by a link.
Violations check_top_folder(const SourceTree& tree) {
    static const std::set<std::string, std::less<>> kAllowed = {"CHANGELOG.md",
                                                                "CMakeLists.txt",
                                                                "CMakePresets.json",
                                                                "LICENSE",
                                                                "README.md",
                                                                "cmake",
                                                                "dev",
                                                                "docs",
                                                                "fabric",
                                                                "include",
                                                                "scenarios",
                                                                "simverbs",
                                                                "tests",
                                                                "tutorials",
                                                                "viz",
                                                                "compile_commands.json"};
    Violations found;
    for (const SourceFile& file : tree) {
        const std::string top = file.path.substr(0, file.path.find('/'));
        if (!top.starts_with('.') && !kAllowed.contains(top)) {
            found.push_back({file.path, 0, "does not belong to the top folder"});
        }
    }
    return found;
}

// A source is alive when a CMakeLists.txt or a script of its folder, or of one above, names it.
Violations check_dead_files(const SourceTree& tree) {
    Violations found;
    for (const SourceFile& file : tree) {
        if (!file.path.ends_with(".cpp") && !file.path.ends_with(".c")) {
            continue;
        }
        const bool alive = std::ranges::any_of(tree, [&](const SourceFile& build) {
            return (build.name() == "CMakeLists.txt" || is_script(build)) &&
                   file.path.starts_with(build.folder()) &&
                   std::ranges::any_of(build.lines, [&](const std::string& line) {
                       return line.find(file.name()) != std::string::npos;
                   });
        });
        if (!alive) {
            found.push_back({file.path, 0, "no CMakeLists.txt or script names it"});
        }
    }
    return found;
}

// A .cpp that implements a header of its own name leaves the saying to that, a test to its
// sentences.
Violations check_headers(const SourceTree& tree) {
    std::set<std::string, std::less<>> headers;
    for (const SourceFile& file : tree) {
        if (file.path.ends_with(".hpp")) {
            headers.insert(file.path.substr(0, file.path.size() - 4));
        }
    }
    Violations found;
    for (const SourceFile& file : tree) {
        const std::string first = file.lines.empty() ? std::string() : file.lines.front();
        const bool starts = first.starts_with("//") || first.starts_with("/*");
        const bool implements = file.path.ends_with("_test.cpp") ||
                                (file.path.ends_with(".cpp") &&
                                 headers.contains(file.path.substr(0, file.path.size() - 4)));
        if (file.is_cpp() && !starts && !implements) {
            found.push_back({file.path, 1, "does not start with what it models"});
        }
    }
    return found;
}

// The words are spelled in two halves here, so that this file does not contain them.
Violations check_promises(const SourceTree& tree) {
    static const std::array<std::string, 4> kWords = {
        std::string("TO") + "DO", std::string("FIX") + "ME",
        std::string("XX") + "X:", std::string("HA") + "CK"};
    return find_text(tree, kWords, "finish it, or write the limit down");
}

Violations check_secrets(const SourceTree& tree) {
    static const std::array<std::string, 5> kWords = {
        std::string("PRIVATE") + " KEY-----", std::string("gh") + "p_", std::string("xox") + "b-",
        std::string("AKIA") + "IOSF", std::string("pass") + "word="};
    return find_text(tree, kWords, "a secret, or looks like one");
}

std::span<const Rule> rules() {
    static constexpr std::array<Rule, 20> kRules = {{
        {"Arrows", check_arrows},
        {"VerbsHeader", check_verbs_header},
        {"Clocks", check_clocks},
        {"Randomness", check_randomness},
        {"Threads", check_threads},
        {"Environment", check_environment},
        {"FloatingPoint", check_floating_point},
        {"HashOrder", check_hash_order},
        {"FileSize", check_file_size},
        {"FunctionSize", check_function_size},
        {"Comments", check_comments},
        {"LineWidth", check_line_width},
        {"Names", check_names},
        {"Readmes", check_readmes},
        {"NamedFiles", check_named_files},
        {"TopFolder", check_top_folder},
        {"DeadFiles", check_dead_files},
        {"Headers", check_headers},
        {"Promises", check_promises},
        {"Secrets", check_secrets},
    }};
    return kRules;
}

}  // namespace simverbs::house
