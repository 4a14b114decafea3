#include "simverbs/cli/run_folder.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/core/temporary_folder.hpp"

namespace simverbs::cli {
namespace {

struct Group {
    pid_t leader = 0;
    std::uint64_t started = 0;  // of the leader, in clock ticks since boot
};

// 0: there is no such process.
std::uint64_t start_of(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(file, text);
    // Behind the name, which may hold anything: the 22nd field is the 20th.
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) {
        return 0;
    }
    std::istringstream words(text.substr(name_end + 1));
    std::string skipped;
    for (int i = 0; i < 19; ++i) {
        words >> skipped;
    }
    std::uint64_t started = 0;
    words >> started;
    return started;
}

// The number of a group is not given to another process while the group has members: where its
// leader's number is in use by a younger process, the group is empty.
void kill_group(const Group& group) {
    const std::uint64_t started = start_of(group.leader);
    if (started == 0 || started == group.started) {
        kill(-group.leader, SIGKILL);
    }
}

constexpr std::string_view kPrefix = "simverbs-run-";

// Locks the file of a run's folder that tells that somebody is there, for as long as a process has
// the descriptor; -1 with errno set: somebody has it, it is another user's, or there is none.
int lock_folder(const std::filesystem::path& folder, int flags) {
    const int file = open((folder / "alive").c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags,
                          S_IRUSR | S_IWUSR);
    struct stat about {};
    if (file >= 0 && (fstat(file, &about) != 0 || about.st_uid != geteuid() ||
                      flock(file, LOCK_EX | LOCK_NB) != 0)) {
        const int failure = errno;
        close(file);
        errno = failure;
        return -1;
    }
    return file;
}

// Removes the folders of runs whose command and guard were both killed.
void remove_dead_folders() {
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(fabric::place_of_temporary_files(), ignored)) {
        if (!entry.path().filename().string().starts_with(kPrefix)) {
            continue;
        }
        if (const int lock = lock_folder(entry.path(), 0); lock >= 0) {
            std::filesystem::remove_all(entry.path(), ignored);
            close(lock);
        }
    }
}

// Makes a folder of one's own that is locked: -1 with errno set. Until it is locked it may be taken
// for a dead one; then another is made.
int make_folder(std::string& path) {
    for (;;) {
        path = (fabric::place_of_temporary_files() / kPrefix).string() + "XXXXXX";
        if (mkdtemp(path.data()) == nullptr) {
            return -1;
        }
        const int lock = lock_folder(path, O_CREAT);
        struct stat about {};
        if (lock >= 0 && fstat(lock, &about) == 0 && about.st_nlink > 0) {
            return lock;
        }
        if (lock >= 0) {
            close(lock);
        } else if (errno != EWOULDBLOCK && errno != ENOENT) {
            return -1;
        }
    }
}

[[noreturn]] void guard(int from_command, const std::string& folder) {
    setsid();  // no signal to the command's group, or from its terminal, is for the guard
    prctl(PR_SET_NAME, "simverbs-guard");
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) {
        std::signal(signal, SIG_IGN);
    }
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        dup2(nowhere, standard);
    }
    std::vector<Group> groups;
    Group group;
    ssize_t got = 0;
    while ((got = read(from_command, &group, sizeof group)) != 0) {
        if (got == sizeof group) {
            groups.push_back(group);
        } else if (errno != EINTR) {
            break;
        }
    }
    for (const Group& each : groups) {
        kill_group(each);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    _exit(0);
}

}  // namespace

RunFolder::RunFolder() {
    remove_dead_folders();
    lock_ = make_folder(path_);
    std::array<int, 2> ends{};
    if (lock_ < 0) {
        const int error = errno;
        error_ = fmt::format("no folder for the run can be made in '{}': {}; TMPDIR names another",
                             fabric::place_of_temporary_files().string(), std::strerror(error));
        return;
    }
    if (pipe2(ends.data(), O_CLOEXEC) != 0 || (guard_ = fork()) < 0) {
        error_ = fmt::format("starting a process: {}", std::strerror(errno));
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
        return;
    }
    if (guard_ == 0) {
        close(ends[1]);
        guard(ends[0], path_);
    }
    close(ends[0]);
    to_guard_ = ends[1];
}

RunFolder::~RunFolder() {
    if (to_guard_ >= 0) {
        close(to_guard_);
        waitpid(guard_, nullptr, 0);
    }
    if (lock_ >= 0) {
        close(lock_);
    }
}

void RunFolder::add_group(pid_t leader) const {
    const Group group{leader, start_of(leader)};
    static_cast<void>(write(to_guard_, &group, sizeof group) == sizeof group);
}

}  // namespace simverbs::cli
