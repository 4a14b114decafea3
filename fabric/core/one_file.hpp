// Tells whether two paths are of one file.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace fabric {

// Returns true if both name one file on a disk, where each writer would overwrite what the other
// writes. An empty path names none. Two writers may share a device such as /dev/null.
inline bool is_one_file(const std::string& one, const std::string& other) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (one.empty() || other.empty() ||
        (fs::exists(one, ignored) && !fs::is_regular_file(one, ignored))) {
        return false;
    }
    return fs::equivalent(one, other, ignored) ||
           fs::weakly_canonical(fs::absolute(one, ignored), ignored) ==
               fs::weakly_canonical(fs::absolute(other, ignored), ignored);
}

}  // namespace fabric
