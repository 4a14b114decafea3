#include "simverbs/cli/unreachable_program.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "simverbs/cli/elf_file.hpp"
#include "simverbs/cli/launch.hpp"

namespace simverbs::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBlank = " \t";
constexpr std::string_view kLibrary = "libibverbs.so.1";

bool is_program(const std::string& path) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
           access(path.c_str(), X_OK) == 0;
}

// Calls visit(element) for each element of a list with colons, until it returns true.
template <class F>
bool any_element(std::string_view list, F&& visit) {
    for (;;) {
        const std::size_t end = list.find(':');
        if (visit(std::string(list.substr(0, end)))) {
            return true;
        }
        if (end == std::string_view::npos) {
            return false;
        }
        list.remove_prefix(end + 1);
    }
}

// The file that execvp() starts; "": there is none.
std::string find_program(const std::string& word) {
    if (word.find('/') != std::string::npos) {
        return is_program(word) ? word : "";
    }
    const char* const path = std::getenv("PATH");
    std::string found;
    any_element(path == nullptr ? "/bin:/usr/bin" : path, [&](const std::string& folder) {
        const std::string candidate = (folder.empty() ? "." : folder) + "/" + word;
        found = !word.empty() && is_program(candidate) ? candidate : "";
        return !found.empty();
    });
    return found;
}

// Returns true if a process that starts the file gets capabilities by it (capabilities(7)).
bool gives_capabilities(const std::string& path) {
    vfs_ns_cap_data data{};
    const ssize_t got = getxattr(path.c_str(), "security.capability", &data, sizeof data);
    if (got < static_cast<ssize_t>(XATTR_CAPS_SZ_1)) {
        return false;
    }
    return (data.magic_etc & VFS_CAP_FLAGS_EFFECTIVE) != 0 || data.data[0].permitted != 0 ||
           (got >= static_cast<ssize_t>(XATTR_CAPS_SZ_2) && data.data[1].permitted != 0);
}

// Returns what makes the kernel set AT_SECURE for the file, "" where nothing does: an effective
// user or group other than the real one, or capabilities that a real user other than root gains
// (cap_bprm_creds_from_file() of Linux security/commoncap.c).
std::string why_secure(const std::string& path) {
    struct stat about {};
    struct statvfs system {};
    if (stat(path.c_str(), &about) != 0 || statvfs(path.c_str(), &system) != 0 ||
        (system.f_flag & ST_NOSUID) != 0) {
        return "";
    }
    const bool may_change = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
    if (may_change && (about.st_mode & S_ISUID) != 0 && about.st_uid != getuid()) {
        return "is set-user-ID";
    }
    constexpr mode_t kSetGroup = S_ISGID | S_IXGRP;
    if (may_change && (about.st_mode & kSetGroup) == kSetGroup && about.st_gid != getgid()) {
        return "is set-group-ID";
    }
    return getuid() != 0 && gives_capabilities(path) ? "has file capabilities" : "";
}

std::string with_origin(std::string folder, const std::string& program) {
    const std::string origin = fs::weakly_canonical(program).parent_path().string();
    for (const std::string_view name : {"${ORIGIN}", "$ORIGIN"}) {
        for (std::size_t at = folder.find(name); at != std::string::npos;
             at = folder.find(name, at + origin.size())) {
            folder.replace(at, name.size(), origin);
        }
    }
    return folder;
}

// Returns the library that the loader takes by DT_RPATH before it looks at LD_LIBRARY_PATH; ""
// where there is none, or it is ours.
std::string other_library(const ElfFile& elf, const std::string& program) {
    const std::string ours = library_folder() + "/" + std::string(kLibrary);
    std::string found;
    any_element(elf.rpath, [&](const std::string& folder) {
        const std::string library = fmt::format("{}/{}", with_origin(folder, program), kLibrary);
        const auto taken = folder.empty() ? std::nullopt : read_elf(library);
        const bool fits = taken && !taken->is_32_bit;
        std::error_code error;
        found = fits && !fs::equivalent(library, ours, error) ? library : "";
        return fits;
    });
    return found;
}

std::string why_not_loaded(const std::string& path) {
    if (const std::string secure = why_secure(path); !secure.empty()) {
        return fmt::format(
            "{} {}, so the loader ignores LD_LIBRARY_PATH and LD_PRELOAD for it, and it finds no "
            "simulated device: run a copy of the file, made by you with cp",
            path, secure);
    }
    const auto elf = read_elf(path);
    if (!elf) {
        return "";
    }
    if (elf->is_32_bit) {
        return fmt::format(
            "{} is a 32-bit program, which cannot load the library of simverbs, and it finds no "
            "simulated device: use a 64-bit one",
            path);
    }
    if (!elf->has_interpreter && !elf->name.starts_with("ld-")) {
        return fmt::format(
            "{} is statically linked, so it does not load {}, and it finds no simulated device: "
            "link it dynamically",
            path, kLibrary);
    }
    if (const std::string other = other_library(*elf, path); !other.empty()) {
        return fmt::format(
            "{} has a DT_RPATH, by which the loader takes {} before that of simverbs, and it finds "
            "no simulated device: remove the entry with chrpath -d or patchelf --remove-rpath",
            path, other);
    }
    return "";
}

// The words behind "#!": the interpreter, and its argument where it has one. Empty: it is no
// script.
std::vector<std::string> interpreter_of(const std::string& path) {
    std::array<char, 256> begin{};  // the kernel looks no further
    std::ifstream(path, std::ios::binary).read(begin.data(), begin.size() - 1);
    std::string_view line(begin.data());
    if (!line.starts_with("#!")) {
        return {};
    }
    line = line.substr(2, line.find('\n') - 2);
    std::vector<std::string> words;
    while (words.size() < 2 && line.find_first_not_of(kBlank) != std::string_view::npos) {
        line.remove_prefix(line.find_first_not_of(kBlank));
        const std::size_t end = line.find_first_of(kBlank);
        words.emplace_back(line.substr(0, end));
        line.remove_prefix(std::min(end, line.size()));
    }
    return words;
}

std::string why_unreachable_file(const std::string& path, int depth) {
    constexpr int kScriptsOfScripts = 5;
    const std::vector<std::string> words = interpreter_of(path);
    if (path.empty() || words.empty() || depth == kScriptsOfScripts) {
        return path.empty() ? "" : why_not_loaded(path);
    }
    const bool is_env = words.size() > 1 && fs::path(words[0]).filename() == "env";
    return why_unreachable_file(find_program(words[is_env ? 1 : 0]), depth + 1);
}

bool is_shell(const std::string& program) {
    static constexpr std::array<std::string_view, 4> kShells = {"sh", "bash", "dash", "ksh"};
    const std::string name = fs::path(program).filename().string();
    return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

bool is_assignment(std::string_view word) {
    const std::size_t equals = word.find('=');
    return equals != std::string_view::npos && equals > 0 &&
           word.substr(0, equals).find_first_not_of(
               "abcdefghijklmnopqrstuvwxyz"
               "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == std::string_view::npos;
}

}  // namespace

std::string first_program(const std::string& command) {
    constexpr std::string_view kSpecial = "\"'`$\\*?[](){}~#!<>&|;\n";
    std::string_view rest = command;
    while (rest.find_first_not_of(kBlank) != std::string_view::npos) {
        rest.remove_prefix(rest.find_first_not_of(kBlank));
        const std::size_t end = rest.find_first_of(" \t\n;&|<>");
        const std::string_view word = rest.substr(0, end);
        if (word.empty() || word.find_first_of(kSpecial) != std::string_view::npos ||
            word.starts_with("PATH=")) {
            return "";
        }
        if (!is_assignment(word) && word != "exec") {
            return std::string(word);
        }
        rest.remove_prefix(word.size());
    }
    return "";
}

std::string why_unreachable(const std::vector<std::string>& words) {
    std::string why = why_unreachable_file(find_program(words[0]), 0);
    if (why.empty() && is_shell(words[0]) && words.size() > 2 && words[1] == "-c") {
        why = why_unreachable_file(find_program(first_program(words[2])), 0);
    }
    return why;
}

}  // namespace simverbs::cli
