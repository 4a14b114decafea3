#include "simverbs/server/thread_states.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace simverbs {
namespace {

bool is_one_of(std::string_view states, const std::filesystem::path& thread) {
    std::ifstream file(thread / "stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t name_end = text.rfind(')');  // before it anything may stand
    if (name_end == std::string::npos || name_end + 2 >= text.size()) {
        return true;  // it has ended
    }
    return states.find(text[name_end + 2]) != std::string_view::npos;
}

}  // namespace

bool all_threads_are(std::string_view states, pid_t process) {
    std::error_code gone;
    const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", process), gone);
    return gone || std::all_of(begin(threads), end(threads), [states](const auto& entry) {
               return is_one_of(states, entry.path());
           });
}

}  // namespace simverbs
