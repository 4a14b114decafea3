// The direction of #include lines, against the list in arrows.txt.
#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "tests/house/rules.hpp"

namespace simverbs::house {

namespace {

using Arrows = std::map<std::string, std::set<std::string>, std::less<>>;

Arrows read_arrows() {
    Arrows arrows;
    std::ifstream in(SIMVERBS_ARROWS);
    for (std::string line; std::getline(in, line);) {
        const std::size_t colon = line.find(':');
        if (line.starts_with('#') || colon == std::string::npos) {
            continue;
        }
        std::istringstream words(line.substr(colon + 1));
        std::set<std::string>& allowed = arrows[line.substr(0, colon)];
        for (std::string word; words >> word;) {
            allowed.insert(word);
        }
    }
    return arrows;
}

const Arrows& arrows() {
    static const Arrows kArrows = read_arrows();
    return kArrows;
}

// The folder of arrows.txt that `path` lies in.
std::optional<std::string> layer_of(std::string_view path) {
    for (std::size_t end = path.rfind('/'); end != std::string_view::npos;
         end = path.substr(0, end).rfind('/')) {
        if (const auto found = arrows().find(path.substr(0, end)); found != arrows().end()) {
            return found->first;
        }
    }
    return std::nullopt;
}

// The file that an #include line names, without its quotes or brackets.
std::optional<std::string> included_file(const std::string& line) {
    if (!line.starts_with("#include")) {
        return std::nullopt;
    }
    const std::size_t begin = line.find_first_of("\"<");
    const std::size_t end = line.find_last_of("\">");
    if (begin == std::string::npos || end <= begin) {
        return std::nullopt;
    }
    return line.substr(begin + 1, end - begin - 1);
}

// Public headers are included by the name a user gives them: <simverbs/simverbs.h>.
std::string in_tree(const std::string& included) {
    const bool is_public =
        included.starts_with("simverbs/") && std::ranges::count(included, '/') == 1;
    return is_public ? "include/" + included : included;
}

bool is_ours(std::string_view included) {
    static constexpr std::string_view kTops[] = {"fabric/", "simverbs/",  "viz/",
                                                 "tests/",  "scenarios/", "tutorials/"};
    return std::ranges::any_of(kTops, [&](auto top) { return included.starts_with(top); });
}

bool is_product(const SourceFile& file) {
    return file.is_cpp() && !file.path.starts_with("tests/");
}

// Returns the folders that a README allows its folder to include: the words in backquotes after
// "May include:", up to the end of the sentence.
std::set<std::string> arrows_said_in(const SourceFile& readme) {
    std::set<std::string> said;
    bool is_list = false;
    for (const std::string& line : readme.lines) {
        std::size_t at = 0;
        if (constexpr std::string_view kBegin = "May include:"; line.starts_with(kBegin)) {
            is_list = true;
            at = kBegin.size();
        }
        while (is_list && at < line.size()) {
            const std::size_t begin = line.find_first_of("`.", at);
            if (begin == std::string::npos) {
                break;
            }
            if (line[begin] == '.') {
                return said;
            }
            const std::size_t end = line.find('`', begin + 1);
            said.insert(line.substr(begin + 1, end - begin - 1));
            at = end == std::string::npos ? line.size() : end + 1;
        }
    }
    return said;
}

}  // namespace

Violations find_unused_arrows(const SourceTree& tree) {
    Arrows unused = arrows();
    std::set<std::string> folders;
    for (const SourceFile& file : tree) {
        const auto from = layer_of(file.path);
        if (!from) {
            continue;
        }
        folders.insert(*from);
        for (std::size_t i = 0; is_product(file) && i < file.code.size(); ++i) {
            if (const auto included = included_file(file.code[i])) {
                unused[*from].erase(layer_of(in_tree(*included)).value_or(""));
            }
        }
    }
    Violations found;
    for (const auto& [from, to] : unused) {
        if (!folders.contains(from)) {
            found.push_back({"tests/house/arrows.txt", 0, "there is no folder " + from});
        }
        for (const std::string& one : to) {
            std::string what = from;
            what += " does not include " + one;
            found.push_back({"tests/house/arrows.txt", 0, what});
        }
    }
    return found;
}

Violations find_other_arrows_in_readmes(const SourceTree& tree) {
    Violations found;
    for (const SourceFile& file : tree) {
        if (file.name() != "README.md") {
            continue;
        }
        const auto folder = arrows().find(file.folder());
        if (folder != arrows().end() && folder->first != "include/simverbs" &&
            folder->first != "tutorials" && arrows_said_in(file) != folder->second) {
            std::string list;
            for (const std::string& one : folder->second) {
                list += (list.empty() ? "`" : ", `") + one + "`";
            }
            found.push_back({file.path, 0,
                             list.empty() ? "has a list of folders that it may include"
                                          : "does not say: May include: " + list + "."});
        }
    }
    return found;
}

Violations check_arrows(const SourceTree& tree) {
    Violations found;
    for (const SourceFile& file : tree) {
        const auto from = layer_of(file.path);
        const bool product = is_product(file);
        if (product && !from && is_ours(file.path)) {
            found.push_back({file.path, 0, "its folder is not in arrows.txt"});
        }
        for (std::size_t i = 0; product && from && i < file.code.size(); ++i) {
            const auto included = included_file(file.code[i]);
            if (!included || !is_ours(*included)) {
                continue;
            }
            const auto to = layer_of(in_tree(*included));
            if (!to || (*to != *from && !arrows().at(*from).contains(*to))) {
                found.push_back({file.path, i + 1, *from + " may not include " + *included});
            }
        }
    }
    return found;
}

// Scenarios are programs: they act through verbs. Public C++ headers speak of ibv_ types to users
// who have included verbs.h themselves.
Violations check_verbs_header(const SourceTree& tree) {
    Violations found;
    for (const SourceFile& file : tree) {
        const bool may = file.path.starts_with("simverbs/abi/") ||
                         file.path.starts_with("scenarios/engine/") ||
                         file.path.starts_with("tests/") || file.path.starts_with("include/") ||
                         file.path.starts_with("tutorials/");
        for (std::size_t i = 0; file.is_cpp() && !may && i < file.code.size(); ++i) {
            const auto included = included_file(file.code[i]);
            if (included && included->starts_with("infiniband/")) {
                found.push_back(
                    {file.path, i + 1, "only simverbs/abi and scenarios include " + *included});
            }
        }
    }
    return found;
}

}  // namespace simverbs::house
