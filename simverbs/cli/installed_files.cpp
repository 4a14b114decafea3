#include "simverbs/cli/installed_files.hpp"

#include "simverbs/cli/launch.hpp"

namespace simverbs::cli {

std::filesystem::path installed_folder(const std::filesystem::path& name) {
    return std::filesystem::weakly_canonical(std::filesystem::path(folder_of_this_program()) /
                                             "../share/simverbs" / name);
}

std::string find_installed_file(const std::string& word) {
    std::error_code ignored;
    if (!word.starts_with("scenarios/") || std::filesystem::exists(word, ignored)) {
        return word;
    }
    const std::filesystem::path installed = installed_folder(word);
    return std::filesystem::exists(installed, ignored)
               ? std::filesystem::canonical(installed, ignored).string()
               : word;
}

void take_installed_files(CLI::Option& option) {
    option.transform(find_installed_file);
}

}  // namespace simverbs::cli
