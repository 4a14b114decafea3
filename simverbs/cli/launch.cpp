#include "simverbs/cli/launch.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include <unistd.h>

namespace simverbs::cli {
namespace {

std::string folder_of_this_program() {
    std::array<char, PATH_MAX> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
    const std::string whole(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    return whole.substr(0, whole.rfind('/'));
}

}  // namespace

std::string library_folder() {
    const std::string own = folder_of_this_program();
    for (const char* candidate : {"/../lib", SIMVERBS_INSTALLED_LIBRARIES}) {
        const std::string folder = own + candidate;
        const std::string library = folder + "/libibverbs.so.1";
        if (access(library.c_str(), R_OK) == 0) {
            std::array<char, PATH_MAX> resolved{};
            return realpath(folder.c_str(), resolved.data()) != nullptr ? resolved.data() : folder;
        }
    }
    return {};
}

void place_environment(const Placement& placement) {
    setenv("SIMVERBS_SERVER", placement.socket.c_str(), 1);
    setenv("SIMVERBS_HOST", placement.host.c_str(), 1);
    std::string path = library_folder();
    if (const char* earlier = std::getenv("LD_LIBRARY_PATH");
        earlier != nullptr && *earlier != '\0') {
        path += ":";
        path += earlier;
    }
    setenv("LD_LIBRARY_PATH", path.c_str(), 1);
}

void run_program(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
}

}  // namespace simverbs::cli
