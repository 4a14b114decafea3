#include "simverbs/server/process_family.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace simverbs {

std::vector<FamilyMember> family_of(pid_t process) {
    std::vector<FamilyMember> family{{process, 0}};
    for (std::size_t i = 0; i < family.size(); ++i) {
        const pid_t parent = family[i].process;
        std::error_code ignored;
        for (const auto& thread :
             std::filesystem::directory_iterator(fmt::format("/proc/{}/task", parent), ignored)) {
            std::ifstream children(thread.path() / "children");
            pid_t child = 0;
            while (children >> child) {
                family.push_back({child, parent});
            }
        }
    }
    return family;
}

NewProcesses::NewProcesses() : file_(open("/proc/loadavg", O_RDONLY | O_CLOEXEC)) {}

NewProcesses::~NewProcesses() {
    if (file_ >= 0) {
        close(file_);
    }
}

// proc_loadavg(5): the last word is the process that was created last. A system that does not tell
// says 0.
bool NewProcesses::any() {
    constexpr std::size_t kTextBytes = 128;
    std::array<char, kTextBytes> buffer{};
    const ssize_t got = pread(file_, buffer.data(), buffer.size() - 1, 0);
    const std::string_view text(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    const std::size_t space = text.rfind(' ');
    const std::uint64_t last =
        space == std::string_view::npos ? 0 : std::strtoull(text.data() + space, nullptr, 10);
    return std::exchange(last_, last) != last || last == 0;
}

}  // namespace simverbs
