// READMEs: one in each folder, which names the files that are there.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/house/rules.hpp"

namespace simverbs::house {

Violations check_readmes(const SourceTree& tree) {
    std::map<std::string, bool, std::less<>> has_readme;
    for (const SourceFile& file : tree) {
        if (!file.folder().empty() && !file.path.starts_with('.')) {
            has_readme[std::string(file.folder())] |= file.name() == "README.md";
        }
    }
    Violations found;
    for (const auto& [folder, has] : has_readme) {
        if (!has) {
            found.push_back({folder, 0, "has no README.md"});
        }
    }
    return found;
}

namespace {

bool is_source_name(std::string_view name) {
    return name.find('/') == std::string_view::npos &&
           (name.ends_with(".cpp") || name.ends_with(".hpp") || name.ends_with(".h") ||
            name.ends_with(".c") || name.ends_with(".*"));
}

// "a*.cpp" fits "about.cpp".
bool fits(std::string_view pattern, std::string_view name) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) {
        return pattern == name;
    }
    const std::string_view end = pattern.substr(star + 1);
    return name.size() >= pattern.size() - 1 && name.starts_with(pattern.substr(0, star)) &&
           (end.find('*') == std::string_view::npos ? name.ends_with(end) : true);
}

// Returns the names of sources in backquotes.
std::vector<std::string> sources_named_in(std::string_view text) {
    std::vector<std::string> names;
    std::size_t begin = text.find('`');
    while (begin != std::string_view::npos) {
        const std::size_t end = text.find('`', begin + 1);
        if (end == std::string_view::npos) {
            break;
        }
        const std::string_view name = text.substr(begin + 1, end - begin - 1);
        if (is_source_name(name)) {
            names.emplace_back(name);
        }
        begin = text.find('`', end + 1);
    }
    return names;
}

bool of_product(std::string_view folder) {
    return folder.starts_with("fabric") || folder.starts_with("simverbs") ||
           folder.starts_with("scenarios") || folder.starts_with("viz");
}

}  // namespace

Violations check_named_files(const SourceTree& tree) {
    std::map<std::string, std::vector<std::string>, std::less<>> sources;
    for (const SourceFile& file : tree) {
        if (file.is_cpp()) {
            sources[std::string(file.folder())].emplace_back(file.name());
        }
    }
    Violations found;
    for (const SourceFile& readme : tree) {
        const bool is_of_product = of_product(readme.folder());
        const auto of_folder = sources.find(readme.folder());
        if (readme.name() != "README.md" || (of_folder == sources.end() && !is_of_product)) {
            continue;
        }
        const std::vector<std::string> there =
            of_folder == sources.end() ? std::vector<std::string>() : of_folder->second;
        std::vector<std::string> unnamed = there;
        for (std::size_t i = 0; i < readme.lines.size(); ++i) {
            const std::string& line = readme.lines[i];
            const bool is_row = line.starts_with('|');
            const std::size_t cell = is_row ? line.find('|', 1) : 0;
            for (const std::string& name : sources_named_in(line)) {
                const auto is_it = [&](const std::string& file) { return fits(name, file); };
                if (is_row && line.find("`" + name + "`") < cell &&
                    std::ranges::none_of(there, is_it)) {
                    found.push_back({readme.path, i + 1, name + " is not there"});
                }
                std::erase_if(unnamed, is_it);
            }
        }
        for (const std::string& name : unnamed) {
            if (is_of_product) {
                found.push_back({readme.path, 0, "does not name " + name});
            }
        }
    }
    return found;
}

}  // namespace simverbs::house
