// Where a world may be met: a socket in a folder that nobody else can change, served by oneself or
// by root. Plain functions without C++ run time, since the preload library uses them too.
#pragma once

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace simverbs {

enum class Distrust {
    kNone,
    kSystem,         // errno says why
    kLink,           // the folder is a symbolic link, or no folder
    kForeignFolder,  // another user owns the folder
    kOpenFolder,     // group or others have rights in the folder
    kForeignPeer,    // the other end is neither this user nor root
};

inline int distrust(Distrust& why, Distrust reason, int error) {
    why = reason;
    errno = error;
    return -1;
}

// Opens the folder of the file `path` and writes the file's name to `name`. The folder is a
// descriptor (O_PATH); -1 with `why` and errno set where it is not this user's own, has rights for
// others, or is a link.
inline int open_own_folder_of(const char* path, char (&name)[NAME_MAX + 1], Distrust& why) {
    const char* slash = std::strrchr(path, '/');
    const char* file = slash == nullptr ? path : slash + 1;
    std::size_t length = slash == nullptr ? 0 : static_cast<std::size_t>(slash - path);
    while (length > 1 && path[length - 1] == '/') {
        --length;  // behind a slash the kernel would follow a link
    }
    char folder[PATH_MAX];
    if (std::strlen(file) > NAME_MAX || length >= sizeof folder) {
        return distrust(why, Distrust::kSystem, ENAMETOOLONG);
    }
    if (*file == '\0' || std::strcmp(file, ".") == 0 || std::strcmp(file, "..") == 0) {
        return distrust(why, Distrust::kSystem, EISDIR);
    }
    std::memcpy(name, file, std::strlen(file) + 1);
    std::memcpy(folder, path, length);
    folder[length] = '\0';
    const char* opened = slash == nullptr ? "." : length == 0 ? "/" : folder;
    const int descriptor = openat(AT_FDCWD, opened, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat about {};
    if (descriptor < 0 || fstatat(descriptor, "", &about, AT_EMPTY_PATH) != 0) {
        const int error = errno;
        if (descriptor >= 0) {
            close(descriptor);
        }
        return distrust(why, Distrust::kSystem, error);
    }
    constexpr mode_t kOfOthers = S_IRWXG | S_IRWXO;
    why = !S_ISDIR(about.st_mode)            ? Distrust::kLink
          : about.st_uid != geteuid()        ? Distrust::kForeignFolder
          : (about.st_mode & kOfOthers) != 0 ? Distrust::kOpenFolder
                                             : Distrust::kNone;
    if (why != Distrust::kNone) {
        close(descriptor);
        errno = why == Distrust::kLink ? ENOTDIR : EPERM;
        return -1;
    }
    return descriptor;
}

// The address of `name` in the folder, whatever becomes of the folder's own name.
inline bool address_in_folder(int folder, const char* name, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path, sizeof address.sun_path,
                                     "/proc/self/fd/%d/%s", folder, name);
    return length > 0 && static_cast<std::size_t>(length) < sizeof address.sun_path;
}

// Returns true if the process at the other end of a connection is this user's or root's.
inline bool is_trusted_peer(int connection, ucred& peer) {
    socklen_t length = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

// The state of a process as /proc has it: 'R', 'S', 'T' (stopped), 't' (traced), ...; '?' where it
// cannot be read.
inline char state_of_process(pid_t process) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(process));
    const int file = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    char text[512];
    const ssize_t length = file >= 0 ? pread(file, text, sizeof text - 1, 0) : -1;
    if (file >= 0) {
        close(file);
    }
    text[length > 0 ? length : 0] = '\0';
    const char* const name_end = std::strrchr(text, ')');
    return name_end != nullptr && name_end[1] == ' ' ? name_end[2] : '?';
}

inline bool is_stopped(pid_t process) {
    const char state = state_of_process(process);
    return state == 'T' || state == 't';
}

// Wall time after which it is said that a server does not answer.
inline constexpr int kAnswerWithinMs = 5000;

// Connects to `name` in the folder; -1 with `why` and errno set.
inline int connect_in_folder(int folder, const char* name, Distrust& why) {
    sockaddr_un address;
    struct stat about {};
    if (!address_in_folder(folder, name, address)) {
        return distrust(why, Distrust::kSystem, ENAMETOOLONG);
    }
    if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
        return distrust(why, Distrust::kSystem, errno);
    }
    if (!S_ISSOCK(about.st_mode)) {
        return distrust(why, Distrust::kSystem, ENOTSOCK);
    }
    const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0) {
        return distrust(why, Distrust::kSystem, errno);
    }
    ucred peer{};
    const bool connected =
        connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (connected && is_trusted_peer(connection, peer)) {
        why = Distrust::kNone;
        return connection;
    }
    const int error = errno;
    close(connection);
    return connected ? distrust(why, Distrust::kForeignPeer, EPERM)
                     : distrust(why, Distrust::kSystem, error);
}

// Connects to the world that listens at `path`; -1 with `why` and errno set.
inline int connect_to_trusted(const char* path, Distrust& why) {
    char name[NAME_MAX + 1];
    const int folder = open_own_folder_of(path, name, why);
    if (folder < 0) {
        return -1;
    }
    const int connection = connect_in_folder(folder, name, why);
    const int error = errno;
    close(folder);
    errno = error;
    return connection;
}

}  // namespace simverbs
