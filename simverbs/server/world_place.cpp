#include "simverbs/server/world_place.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simverbs/protocol/served_protocol.hpp"

namespace simverbs {
namespace {

constexpr const char* kTreeSuffix = ".devices";
constexpr mode_t kFileMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH;

// A folder below `parent`, made where it is missing; never what a link leads to.
int enter(int parent, const std::string& name) {
    mkdirat(parent, name.c_str(), S_IRWXU);
    return openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Kept from before a look at a socket until it is made or removed: else one command could remove
// the socket that another has bound and does not listen at yet.
class FolderLock {
  public:
    explicit FolderLock(int folder)
        : lock_(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        if (lock_ >= 0) {
            flock(lock_, LOCK_EX);
        }
    }
    ~FolderLock() {
        if (lock_ >= 0) {
            close(lock_);
        }
    }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

  private:
    int lock_;
};

}  // namespace

fabric::Outcome<std::unique_ptr<WorldPlace>> WorldPlace::listen_at(const std::string& path) {
    int not_made = 0;  // why the folder could not be made
    if (const std::size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0) {
        not_made = mkdir(path.substr(0, slash).c_str(), S_IRWXU) == 0 ? 0 : errno;
    }
    char name[NAME_MAX + 1];
    Distrust why = Distrust::kNone;
    const int folder = open_own_folder_of(path.c_str(), name, why);
    if (folder < 0) {
        const int error = errno == ENOENT && not_made != 0 ? not_made : errno;
        const std::string reason = describe(why, error, path);
        return fabric::Failure(fmt::format("cannot listen at '{}': {}", path, reason));
    }
    std::unique_ptr<WorldPlace> place(new WorldPlace(folder, name, path));
    if (std::string wrong = place->begin_to_listen(path); !wrong.empty()) {
        return fabric::Failure(std::move(wrong));
    }
    return place;
}

WorldPlace::WorldPlace(int folder, std::string name, const std::string& path)
    : folder_(folder), name_(std::move(name)), tree_path_(path + kTreeSuffix) {}

WorldPlace::~WorldPlace() {
    leave();
    leave_last_folder();
    forget_empty_file();
    close(folder_);
}

std::string WorldPlace::begin_to_listen(const std::string& path) {
    const auto refuse = [&path](const char* reason) {
        return fmt::format("cannot listen at '{}': {}", path, reason);
    };
    const FolderLock lock(folder_);
    Distrust why = Distrust::kNone;
    const int running = connect_in_folder(folder_, name_.c_str(), why);
    if (running >= 0) {
        close(running);
        return fmt::format("a world is already served at '{}'; to end it: simverbs down{}", path,
                           world_option(path));
    }
    struct stat about {};
    if (fstatat(folder_, name_.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISSOCK(about.st_mode)) {
            return refuse("there is a file that is no socket");
        }
        unlinkat(folder_, name_.c_str(), 0);  // left behind by a server that was killed
    }
    remove_tree();
    sockaddr_un address;
    if (!address_in_folder(folder_, name_.c_str(), address)) {
        return refuse("its name is too long");
    }
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0 ||
        bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener, SOMAXCONN) != 0) {
        const int failure = errno;
        if (listener >= 0) {
            close(listener);
        }
        return refuse(std::strerror(failure));
    }
    listener_ = listener;
    return "";
}

void WorldPlace::leave() {
    if (listener_ >= 0) {
        unlinkat(folder_, name_.c_str(), 0);
        close(std::exchange(listener_, -1));
        remove_tree();
    }
}

bool WorldPlace::clear(const std::string& path) {
    char name[NAME_MAX + 1];
    Distrust why = Distrust::kNone;
    const int folder = open_own_folder_of(path.c_str(), name, why);
    if (folder < 0) {
        return false;
    }
    WorldPlace place(folder, name, path);
    const FolderLock lock(folder);
    const int running = connect_in_folder(folder, name, why);
    if (running >= 0) {
        close(running);
        return false;
    }
    if (why != Distrust::kSystem || errno != ECONNREFUSED) {
        return false;
    }
    unlinkat(folder, name, 0);
    place.remove_tree();
    return true;
}

std::vector<std::string> find_worlds(std::vector<std::string>& cleared) {
    namespace fs = std::filesystem;
    std::vector<std::string> names;
    std::error_code ignored;
    const fs::path folder = fs::path(socket_path(std::string(kDefaultWorld))).parent_path();
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
        const fs::path& path = entry.path();
        if (path.extension() != ".sock" || !entry.is_socket(ignored)) {
            continue;
        }
        if (WorldPlace::clear(path.string())) {
            cleared.push_back(path.string());
        } else {
            names.push_back(path.stem().string());
        }
    }
    std::sort(cleared.begin(), cleared.end());
    std::sort(names.begin(), names.end());
    return names;
}

int WorldPlace::folder_of(const std::string& path, std::string& name) const {
    const std::size_t slash = path.rfind('/');
    const std::string wanted = path.substr(0, slash == std::string::npos ? 0 : slash);
    name = path.substr(slash == std::string::npos ? 0 : slash + 1);
    if (last_folder_ < 0 || last_path_ != wanted) {
        leave_last_folder();
        last_folder_ = make_folder(wanted);
        last_path_ = wanted;
    }
    return last_folder_;
}

void WorldPlace::leave_last_folder() const {
    if (last_folder_ >= 0) {
        close(std::exchange(last_folder_, -1));
    }
}

int WorldPlace::make_folder(const std::string& path) const {
    int folder = enter(folder_, name_ + kTreeSuffix);
    std::size_t begin = 0;
    while (folder >= 0 && begin < path.size()) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        if (end > begin) {
            const int next = enter(folder, path.substr(begin, end - begin));
            close(std::exchange(folder, next));
        }
        begin = end + 1;
    }
    return folder;
}

void WorldPlace::make_file(const std::string& path) const {
    std::string name;
    const int folder = folder_of(path, name);
    if (folder < 0) {
        return;
    }
    // A file system may have no hard links, or only so many of one file.
    if (empty_file_ >= 0 && linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", empty_file_).c_str(),
                                   folder, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        return;
    }
    const int file = openat(folder, name.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode);
    if (file >= 0) {
        forget_empty_file();
        empty_file_ = file;
    }
}

void WorldPlace::forget_empty_file() const {
    if (empty_file_ >= 0) {
        close(std::exchange(empty_file_, -1));
    }
}

void WorldPlace::make_link(const std::string& path, const std::string& target) const {
    std::string name;
    const int folder = folder_of(path, name);
    if (folder >= 0) {
        static_cast<void>(symlinkat(target.c_str(), folder, name.c_str()));
    }
}

// Removes a link itself, not what it points to.
void WorldPlace::remove_tree() const {
    leave_last_folder();
    forget_empty_file();
    std::error_code ignored;
    std::filesystem::remove_all(fmt::format("/proc/self/fd/{}/{}{}", folder_, name_, kTreeSuffix),
                                ignored);
}

}  // namespace simverbs
