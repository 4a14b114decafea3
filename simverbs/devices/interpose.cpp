// The functions of libc that take a path, and those that read, write, describe or copy a
// descriptor, for programs that look for RDMA devices in /sys and /dev. Other paths and descriptors
// go straight on; nothing is allocated, and nothing happens before a program calls.
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "simverbs/devices/attribute_status.hpp"
#include "simverbs/devices/device_files.hpp"
#include "simverbs/devices/next_function.hpp"
#include "simverbs/devices/rdma_cm_device.hpp"
#include "simverbs/devices/tree_path.hpp"

using simverbs::devices::next;
using simverbs::devices::TreePath;

namespace {

namespace devices = simverbs::devices;
using devices::FileKind;

bool is_folder(const TreePath& path) {
    struct stat about {};
    static auto* const kNextStat = next<int(const char*, struct stat*)>("stat");
    return kNextStat(path.real(), &about) == 0 && S_ISDIR(about.st_mode);
}

int open_at(int folder, const char* name, int flags, mode_t mode) {
    static auto* const kNextOpenat = next<int(int, const char*, int, ...)>("openat");
    const TreePath path(folder, name);
    if (!path.is_ours()) [[likely]] {
        return kNextOpenat(folder, name, flags, mode);
    }
    const int error = errno;
    if (is_folder(path)) {
        devices::entered_tree();
        return kNextOpenat(AT_FDCWD, path.real(), flags, mode);
    }
    errno = error;
    return devices::open_file(path, flags);
}

std::FILE* open_stream(const char* name, const char* mode, const char* function) {
    const TreePath path(AT_FDCWD, name);
    if (!path.is_ours()) {
        return next<std::FILE*(const char*, const char*)>(function)(name, mode);
    }
    const bool reads = mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
    const int flags = std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0;
    const int file = devices::open_file(path, flags | (reads ? O_RDONLY : O_RDWR));
    return file < 0 ? nullptr : fdopen(file, mode);
}

}  // namespace

// A mode comes along only where a file may be made; the kernel ignores it otherwise.
// NOLINTBEGIN(bugprone-macro-parentheses): `mode` is declared
#define TAKE_MODE(last, mode)                               \
    mode_t mode = 0;                                        \
    if (((last) & (O_CREAT | O_TMPFILE)) != 0) {            \
        va_list rest;                                       \
        va_start(rest, last);                               \
        mode = static_cast<mode_t>(va_arg(rest, unsigned)); \
        va_end(rest);                                       \
    }
// NOLINTEND(bugprone-macro-parentheses)

// By this name libsimverbs sees that the program has this library.
INTERPOSED void simverbs_devices_preloaded() {}

INTERPOSED int open(const char* name, int flags, ...) {
    TAKE_MODE(flags, mode)
    return open_at(AT_FDCWD, name, flags, mode);
}
INTERPOSED int open64(const char* name, int flags, ...) {
    TAKE_MODE(flags, mode)
    return open_at(AT_FDCWD, name, flags | O_LARGEFILE, mode);
}
INTERPOSED int openat(int folder, const char* name, int flags, ...) {
    TAKE_MODE(flags, mode)
    return open_at(folder, name, flags, mode);
}
INTERPOSED int openat64(int folder, const char* name, int flags, ...) {
    TAKE_MODE(flags, mode)
    return open_at(folder, name, flags | O_LARGEFILE, mode);
}
// _FORTIFY_SOURCE replaces the functions above by these; the names are glibc's.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
INTERPOSED int __open_2(const char* name, int flags) {
    return open_at(AT_FDCWD, name, flags, 0);
}
INTERPOSED int __open64_2(const char* name, int flags) {
    return open_at(AT_FDCWD, name, flags | O_LARGEFILE, 0);
}
INTERPOSED int __openat_2(int folder, const char* name, int flags) {
    return open_at(folder, name, flags, 0);
}
INTERPOSED int __openat64_2(int folder, const char* name, int flags) {
    return open_at(folder, name, flags | O_LARGEFILE, 0);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

INTERPOSED std::FILE* fopen(const char* name, const char* mode) {
    return open_stream(name, mode, "fopen");
}
INTERPOSED std::FILE* fopen64(const char* name, const char* mode) {
    return open_stream(name, mode, "fopen64");
}

// NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and arguments are lists
// The path alone is another one.
#define REDIRECT(result, function, folder, parameters, types, arguments) \
    INTERPOSED result function parameters {                              \
        static auto* const kOriginal = next<result types>(#function);    \
        const TreePath path(folder, name);                               \
        return kOriginal arguments;                                      \
    }

// `about` is of a file of the tree.
#define DESCRIBE_PATH(function, folder, parameters, types, arguments) \
    INTERPOSED int function parameters {                              \
        static auto* const kOriginal = next<int types>(#function);    \
        const TreePath path(folder, name);                            \
        const int result = kOriginal arguments;                       \
        if (result == 0 && path.is_ours()) {                          \
            devices::describe_file(path.name(), *about);              \
        }                                                             \
        return result;                                                \
    }

// With AT_EMPTY_PATH and no name it describes the descriptor itself.
#define DESCRIBE_AT(function, parameters, types, arguments)                                     \
    INTERPOSED int function parameters {                                                        \
        static auto* const kOriginal = next<int types>(#function);                              \
        const TreePath path(folder, name);                                                      \
        const bool is_descriptor = (flags & AT_EMPTY_PATH) != 0 && path.is_empty();             \
        const int result = kOriginal arguments;                                                 \
        if (result == 0 && is_descriptor && devices::kind_of(folder) == FileKind::kAttribute) { \
            devices::describe_attribute(folder, *about);                                        \
        } else if (result == 0 && path.is_ours()) {                                             \
            devices::describe_file(path.name(), *about);                                        \
        }                                                                                       \
        return result;                                                                          \
    }
// NOLINTEND(bugprone-macro-parentheses)
DESCRIBE_PATH(stat, AT_FDCWD, (const char* name, struct stat* about), (const char*, struct stat*),
              (path.real(), about))
DESCRIBE_PATH(stat64, AT_FDCWD, (const char* name, struct stat64* about),
              (const char*, struct stat64*), (path.real(), about))
DESCRIBE_PATH(lstat, AT_FDCWD, (const char* name, struct stat* about), (const char*, struct stat*),
              (path.real(), about))
DESCRIBE_PATH(lstat64, AT_FDCWD, (const char* name, struct stat64* about),
              (const char*, struct stat64*), (path.real(), about))
// As programs of before glibc 2.33 call them.
DESCRIBE_PATH(__xstat, AT_FDCWD, (int version, const char* name, struct stat* about),
              (int, const char*, struct stat*), (version, path.real(), about))
DESCRIBE_PATH(__xstat64, AT_FDCWD, (int version, const char* name, struct stat64* about),
              (int, const char*, struct stat64*), (version, path.real(), about))
DESCRIBE_PATH(__lxstat, AT_FDCWD, (int version, const char* name, struct stat* about),
              (int, const char*, struct stat*), (version, path.real(), about))
DESCRIBE_PATH(__lxstat64, AT_FDCWD, (int version, const char* name, struct stat64* about),
              (int, const char*, struct stat64*), (version, path.real(), about))

DESCRIBE_AT(fstatat, (int folder, const char* name, struct stat* about, int flags),
            (int, const char*, struct stat*, int), (folder, path.real(), about, flags))
DESCRIBE_AT(fstatat64, (int folder, const char* name, struct stat64* about, int flags),
            (int, const char*, struct stat64*, int), (folder, path.real(), about, flags))
DESCRIBE_AT(statx, (int folder, const char* name, int flags, unsigned mask, struct statx* about),
            (int, const char*, int, unsigned, struct statx*),
            (folder, path.real(), flags, mask, about))

REDIRECT(int, access, AT_FDCWD, (const char* name, int mode), (const char*, int),
         (path.real(), mode))
REDIRECT(int, eaccess, AT_FDCWD, (const char* name, int mode), (const char*, int),
         (path.real(), mode))
REDIRECT(int, euidaccess, AT_FDCWD, (const char* name, int mode), (const char*, int),
         (path.real(), mode))
REDIRECT(int, faccessat, folder, (int folder, const char* name, int mode, int flags),
         (int, const char*, int, int), (folder, path.real(), mode, flags))
REDIRECT(ssize_t, readlink, AT_FDCWD, (const char* name, char* buffer, size_t size),
         (const char*, char*, size_t), (path.real(), buffer, size))
REDIRECT(ssize_t, getxattr, AT_FDCWD,
         (const char* name, const char* attribute, void* value, size_t size),
         (const char*, const char*, void*, size_t), (path.real(), attribute, value, size))
REDIRECT(ssize_t, lgetxattr, AT_FDCWD,
         (const char* name, const char* attribute, void* value, size_t size),
         (const char*, const char*, void*, size_t), (path.real(), attribute, value, size))

// A file of ours has the name by which programs ask for it, or the one that a link in the tree
// leads to.
INTERPOSED char* realpath(const char* name, char* resolved) {
    static auto* const kOriginal = next<char*(const char*, char*)>("realpath");
    const TreePath path(AT_FDCWD, name);
    if (!path.is_ours()) {
        return kOriginal(name, resolved);
    }
    char checked[PATH_MAX];
    if (kOriginal(path.real(), checked) == nullptr) {
        return nullptr;
    }
    char tree[PATH_MAX];
    const char* const root = kOriginal(devices::placement().tree, tree);
    const std::size_t length = root == nullptr ? 0 : std::strlen(root);
    const bool is_in_tree = root != nullptr && std::strncmp(checked, root, length) == 0;
    const char* const found = is_in_tree ? checked + length : path.name();
    if (resolved == nullptr) {
        return strdup(found);
    }
    std::memcpy(resolved, found, std::strlen(found) + 1);
    return resolved;
}

INTERPOSED int chdir(const char* name) {
    static auto* const kOriginal = next<int(const char*)>("chdir");
    const TreePath path(AT_FDCWD, name);
    if (path.is_ours()) {
        devices::entered_tree();
    }
    return kOriginal(path.real());
}

INTERPOSED DIR* opendir(const char* name) {
    static auto* const kOriginal = next<DIR*(const char*)>("opendir");
    const TreePath path(AT_FDCWD, name);
    if (path.is_ours()) {
        devices::entered_tree();
    }
    return kOriginal(path.real());
}

using Filter = int (*)(const dirent*);
using Compare = int (*)(const dirent**, const dirent**);
REDIRECT(int, scandir, AT_FDCWD, (const char* name, dirent*** list, Filter filter, Compare compare),
         (const char*, dirent***, Filter, Compare), (path.real(), list, filter, compare))
using Filter64 = int (*)(const dirent64*);
using Compare64 = int (*)(const dirent64**, const dirent64**);
REDIRECT(int, scandir64, AT_FDCWD,
         (const char* name, dirent64*** list, Filter64 filter, Compare64 compare),
         (const char*, dirent64***, Filter64, Compare64), (path.real(), list, filter, compare))

INTERPOSED ssize_t read(int descriptor, void* bytes, size_t count) {
    static auto* const kOriginal = next<ssize_t(int, void*, size_t)>("read");
    switch (devices::kind_of(descriptor)) {
        [[likely]] case FileKind::kNone : case FileKind::kRdmaNetlink : break;
        case FileKind::kAttribute:
            if (lseek(descriptor, 0, SEEK_CUR) == 0) {
                devices::refresh_attribute(descriptor);
            }
            break;
        case FileKind::kDevice:
            return devices::read_device(descriptor, bytes, count);
        case FileKind::kRdmaCm:
            return devices::read_rdma_cm(descriptor, bytes, count);
    }
    return kOriginal(descriptor, bytes, count);
}

INTERPOSED ssize_t write(int descriptor, const void* bytes, size_t count) {
    static auto* const kOriginal = next<ssize_t(int, const void*, size_t)>("write");
    const FileKind kind = devices::kind_of(descriptor);
    if (kind == FileKind::kRdmaCm) [[unlikely]] {
        return devices::write_rdma_cm(descriptor, bytes, count);
    }
    if (kind == FileKind::kDevice) [[unlikely]] {
        return devices::write_device(descriptor, bytes, count);
    }
    return kOriginal(descriptor, bytes, count);
}

// NOLINTBEGIN(bugprone-macro-parentheses): parameters and arguments are lists
// A descriptor of an attribute is described as the file of its path, and the socket or pipe behind
// one of a device as the device.
#define DESCRIBE(function, parameters, types, arguments)                               \
    INTERPOSED int function parameters {                                               \
        static auto* const kOriginal = next<int types>(#function);                     \
        const int result = kOriginal arguments;                                        \
        const FileKind kind = devices::kind_of(descriptor);                            \
        const bool is_device = kind == FileKind::kDevice || kind == FileKind::kRdmaCm; \
        if (result == 0 && is_device) {                                                \
            devices::describe_device(descriptor, about->st_mode, about->st_rdev);      \
        } else if (result == 0 && kind == FileKind::kAttribute) {                      \
            devices::describe_attribute(descriptor, *about);                           \
        }                                                                              \
        return result;                                                                 \
    }
DESCRIBE(fstat, (int descriptor, struct stat* about), (int, struct stat*), (descriptor, about))
DESCRIBE(fstat64, (int descriptor, struct stat64* about), (int, struct stat64*),
         (descriptor, about))
DESCRIBE(__fxstat, (int version, int descriptor, struct stat* about), (int, int, struct stat*),
         (version, descriptor, about))
DESCRIBE(__fxstat64, (int version, int descriptor, struct stat64* about),
         (int, int, struct stat64*), (version, descriptor, about))

// Another descriptor of a file of ours is one, too.
#define COPY(function, parameters, types, arguments)               \
    INTERPOSED int function parameters {                           \
        static auto* const kOriginal = next<int types>(#function); \
        const int copy = kOriginal arguments;                      \
        if (devices::kind_of(descriptor) != FileKind::kNone) {     \
            devices::copied(descriptor, copy);                     \
        }                                                          \
        return copy;                                               \
    }
COPY(dup, (int descriptor), (int), (descriptor))
COPY(dup2, (int descriptor, int copy_to), (int, int), (descriptor, copy_to))
COPY(dup3, (int descriptor, int copy_to, int flags), (int, int, int), (descriptor, copy_to, flags))

#define CONTROL(function)                                                     \
    INTERPOSED int function(int descriptor, int command, ...) {               \
        static auto* const kOriginal = next<int(int, int, ...)>(#function);   \
        va_list rest;                                                         \
        va_start(rest, command);                                              \
        void* const argument = va_arg(rest, void*);                           \
        va_end(rest);                                                         \
        const int result = kOriginal(descriptor, command, argument);          \
        const bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC; \
        if (copies && devices::kind_of(descriptor) != FileKind::kNone) {      \
            devices::copied(descriptor, result);                              \
        }                                                                     \
        return result;                                                        \
    }
CONTROL(fcntl)
CONTROL(fcntl64)
// NOLINTEND(bugprone-macro-parentheses)

// A device whose world has ended.
INTERPOSED int poll(pollfd* files, nfds_t count, int timeout) {
    static auto* const kOriginal = next<int(pollfd*, nfds_t, int)>("poll");
    const int ready = kOriginal(files, count, timeout);
    bool any_gone = false;
    for (nfds_t i = 0; ready > 0 && i < count; ++i) {
        if ((files[i].revents & POLLHUP) != 0 &&
            devices::kind_of(files[i].fd) == FileKind::kDevice) {
            files[i].revents = POLLERR | POLLHUP;
            any_gone = true;
        }
    }
    if (any_gone) {
        const int pause = devices::pause_before_retry_ms();
        kOriginal(nullptr, 0, timeout >= 0 && timeout < pause ? timeout : pause);
    }
    return ready;
}

INTERPOSED ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
    static auto* const kOriginal = next<ssize_t(int, void*, size_t, off_t)>("pread");
    if (offset == 0 && devices::kind_of(descriptor) == FileKind::kAttribute) {
        devices::refresh_attribute(descriptor);
    }
    return kOriginal(descriptor, bytes, count, offset);
}

INTERPOSED int ioctl(int descriptor, unsigned long number, ...) {
    static auto* const kOriginal = next<int(int, unsigned long, ...)>("ioctl");
    va_list rest;
    va_start(rest, number);
    void* const argument = va_arg(rest, void*);
    va_end(rest);
    if (devices::kind_of(descriptor) != FileKind::kDevice) [[likely]] {
        return kOriginal(descriptor, number, argument);
    }
    return devices::control_device(descriptor, number, argument);
}
