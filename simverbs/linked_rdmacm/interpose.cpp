// The functions of libc by which librdmacm, and programs that look for it, use
// /dev/infiniband/rdma_cm: for that path and its descriptors they go to the world in this process.
// Everything else goes straight on; nothing is allocated, and nothing happens before a program
// calls.
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <initializer_list>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "simverbs/abi/rdma_cm_calls.hpp"

namespace {

// The function of that name that this library stands before.
template <class F>
F* next(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

bool is_path(const char* name, const char* wanted) {
    return name != nullptr && name[0] == '/' && std::strcmp(name, wanted) == 0;
}

// Also where the machine has such a device itself: it knows nothing of simulated ones.
bool is_ours(const char* name) {
    return is_path(name, simverbs::abi::kRdmaCmPath) && simverbs_rdma_cm_exists() == 1;
}

int open_at(int folder, const char* name, int flags, mode_t mode) {
    static auto* const kNextOpenat = next<int(int, const char*, int, ...)>("openat");
    return is_ours(name) ? simverbs_rdma_cm_open(flags) : kNextOpenat(folder, name, flags, mode);
}

// A character device, with the number of the machine's own where it has one: librdmacm compares it
// with what the kernel says. /dev/null stands for it elsewhere.
void describe(mode_t& mode, dev_t& number) {
    struct stat about {};
    for (const char* name : {simverbs::abi::kRdmaCmPath, "/dev/null"}) {
        static auto* const kNextStat = next<int(const char*, struct stat*)>("stat");
        if (kNextStat(name, &about) == 0 && S_ISCHR(about.st_mode)) {
            mode = about.st_mode;
            number = about.st_rdev;
            return;
        }
    }
}

bool is_open(int descriptor) {
    return simverbs_rdma_cm_has(descriptor) == 1 && simverbs_rdma_cm_is_open(descriptor) == 1;
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

#define INTERPOSED extern "C" __attribute__((visibility("default")))

// By this name libsimverbs sees that the program has this library.
INTERPOSED void simverbs_rdmacm_linked() {}

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

INTERPOSED int access(const char* name, int mode) {
    static auto* const kOriginal = next<int(const char*, int)>("access");
    if (is_path(name, simverbs::abi::kInterposedPath)) {
        return 0;
    }
    if (!is_ours(name)) {
        return kOriginal(name, mode);
    }
    if ((mode & X_OK) != 0) {
        errno = EACCES;
        return -1;
    }
    return 0;
}

// As of the device where it is not on the machine's disk.
// NOLINTBEGIN(bugprone-macro-parentheses): `Stat` is a type, parameters and arguments are lists
#define LOOK(function, Stat)                                                     \
    INTERPOSED int function(const char* name, Stat* about) {                     \
        static auto* const kOriginal = next<int(const char*, Stat*)>(#function); \
        const int result = kOriginal(is_ours(name) ? "/dev/null" : name, about); \
        if (result == 0 && is_ours(name)) {                                      \
            describe(about->st_mode, about->st_rdev);                            \
        }                                                                        \
        return result;                                                           \
    }
LOOK(stat, struct stat)
LOOK(stat64, struct stat64)

// The socket that a descriptor is counts as the device.
#define DESCRIBE(function, parameters, types, arguments)           \
    INTERPOSED int function parameters {                           \
        static auto* const kOriginal = next<int types>(#function); \
        const int result = kOriginal arguments;                    \
        if (result == 0 && is_open(descriptor)) {                  \
            describe(about->st_mode, about->st_rdev);              \
        }                                                          \
        return result;                                             \
    }
DESCRIBE(fstat, (int descriptor, struct stat* about), (int, struct stat*), (descriptor, about))
DESCRIBE(fstat64, (int descriptor, struct stat64* about), (int, struct stat64*),
         (descriptor, about))
// As programs of before glibc 2.33 call them.
DESCRIBE(__fxstat, (int version, int descriptor, struct stat* about), (int, int, struct stat*),
         (version, descriptor, about))
DESCRIBE(__fxstat64, (int version, int descriptor, struct stat64* about),
         (int, int, struct stat64*), (version, descriptor, about))

INTERPOSED ssize_t write(int descriptor, const void* bytes, size_t count) {
    static auto* const kOriginal = next<ssize_t(int, const void*, size_t)>("write");
    return simverbs_rdma_cm_has(descriptor) == 1 ? simverbs_rdma_cm_write(descriptor, bytes, count)
                                                 : kOriginal(descriptor, bytes, count);
}

// The device has neither of these.
INTERPOSED ssize_t read(int descriptor, void* bytes, size_t count) {
    static auto* const kOriginal = next<ssize_t(int, void*, size_t)>("read");
    if (is_open(descriptor)) {
        errno = EINVAL;
        return -1;
    }
    return kOriginal(descriptor, bytes, count);
}
INTERPOSED ssize_t writev(int descriptor, const iovec* parts, int count) {
    static auto* const kOriginal = next<ssize_t(int, const iovec*, int)>("writev");
    if (is_open(descriptor)) {
        errno = EINVAL;
        return -1;
    }
    return kOriginal(descriptor, parts, count);
}

INTERPOSED int close(int descriptor) {
    static auto* const kOriginal = next<int(int)>("close");
    return simverbs_rdma_cm_has(descriptor) == 1 ? simverbs_rdma_cm_close(descriptor)
                                                 : kOriginal(descriptor);
}

// Another descriptor of a file of ours is one, too.
#define COPY(function, parameters, types, arguments)               \
    INTERPOSED int function parameters {                           \
        static auto* const kOriginal = next<int types>(#function); \
        const int copy = kOriginal arguments;                      \
        if (simverbs_rdma_cm_has(descriptor) == 1) {               \
            simverbs_rdma_cm_copied(descriptor, copy);             \
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
        if (copies && simverbs_rdma_cm_has(descriptor) == 1) {                \
            simverbs_rdma_cm_copied(descriptor, result);                      \
        }                                                                     \
        return result;                                                        \
    }
CONTROL(fcntl)
CONTROL(fcntl64)
// NOLINTEND(bugprone-macro-parentheses)
