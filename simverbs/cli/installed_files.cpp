#include "simverbs/cli/installed_files.hpp"

#include <filesystem>
#include <string>

#include "simverbs/cli/launch.hpp"

namespace simverbs::cli {

void take_installed_files(CLI::Option& option) {
    option.transform([](std::string word) {
        std::error_code ignored;
        if (!word.starts_with("scenarios/") || std::filesystem::exists(word, ignored)) {
            return word;
        }
        const std::filesystem::path installed =
            std::filesystem::path(folder_of_this_program()) / "../share/simverbs" / word;
        return std::filesystem::exists(installed, ignored)
                   ? std::filesystem::canonical(installed, ignored).string()
                   : word;
    });
}

}  // namespace simverbs::cli
