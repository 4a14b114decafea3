#include "simverbs/devices/device_files.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/devices/report_signal.hpp"
#include "simverbs/protocol/device_protocol.hpp"
#include "simverbs/protocol/trusted_socket.hpp"

namespace simverbs::devices {
namespace {

constexpr std::size_t kDatagramBytes = 256;
constexpr int kMaxDescriptor = 1024;

// A file that is open. Its descriptor may be closed behind our back, and its number be used for
// something else: the inode tells.
struct OpenFile {
    ino_t inode = 0;
    int control = -1;  // of a device
    ino_t control_inode = 0;
    char name[DeviceRequest::kMaxPath]{};  // of an attribute
};

std::atomic<FileKind> g_kinds[kMaxDescriptor];
OpenFile g_files[kMaxDescriptor];
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // of g_files, and one ioctl at a time

// A child is made while no thread of its parent is in here.
__attribute__((constructor)) void survive_fork() {
    pthread_atfork([] { pthread_mutex_lock(&g_lock); }, [] { pthread_mutex_unlock(&g_lock); },
                   [] { pthread_mutex_unlock(&g_lock); });
}

class Guard {
  public:
    Guard() { pthread_mutex_lock(&g_lock); }
    ~Guard() { pthread_mutex_unlock(&g_lock); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
};

int fail(int error) {
    errno = error;
    return -1;
}

ssize_t receive(int socket, void* bytes, std::size_t count, int flags, int* descriptor = nullptr) {
    iovec part{bytes, count};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    const cmsghdr* extra = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (extra != nullptr && extra->cmsg_type == SCM_RIGHTS) {
        const std::size_t came = (extra->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < came; ++i) {  // the padding has room for a second one
            int found = -1;
            std::memcpy(&found, CMSG_DATA(extra) + i * sizeof found, sizeof found);
            if (descriptor != nullptr && i == 0) {
                *descriptor = found;
            } else {
                close(found);
            }
        }
    }
    return got;
}

int connect_to_world() {
    Distrust why = Distrust::kNone;
    const int connection = connect_to_trusted(placement().socket, why);
    const bool has_ended =
        why == Distrust::kSystem && (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR);
    return has_ended ? fail(ENXIO) : connection;  // the world has ended, and its devices with it
}

// Waits until there is something to read. Says on stderr, once in a process, that the server does
// not answer.
void await_reply(int connection) {
    static std::atomic<bool> said{false};
    pollfd look{connection, POLLIN, 0};
    int ready = 0;
    do {
        ready = poll(&look, 1, said.load(std::memory_order_relaxed) ? -1 : kAnswerWithinMs);
        if (ready == 0 && !said.exchange(true)) {
            ucred peer{};
            const bool is_known = is_trusted_peer(connection, peer);
            dprintf(STDERR_FILENO,
                    "simverbs: the world at '%s' does not answer within %d s (process %d%s); "
                    "waiting for it\n",
                    placement().socket, kAnswerWithinMs / 1000, is_known ? peer.pid : -1,
                    is_known && is_stopped(peer.pid) ? ", stopped" : "");
        }
    } while (ready == 0 || (ready < 0 && errno == EINTR));
}

// Sends the request and takes the reply; -1 with errno set when the world does not answer.
template <class Reply>
int ask(int connection, RequestKind kind, const char* name, int flags, Reply& reply,
        int* descriptor = nullptr) {
    DeviceRequest request;
    request.head.kind = kind;
    request.flags = flags;
    const std::size_t name_length = std::strlen(name);
    const std::size_t host_length = std::strlen(placement().host);
    if (name_length >= sizeof request.path || host_length >= sizeof request.host) {
        return fail(ENAMETOOLONG);
    }
    std::memcpy(request.host, placement().host, host_length + 1);
    std::memcpy(request.path, name, name_length + 1);
    union {
        Reply expected;
        VersionRefusal refusal;
    } answer{};
    ssize_t got = send(connection, &request, sizeof request, MSG_NOSIGNAL);
    if (got == sizeof request) {
        await_reply(connection);
        do {
            got = receive(connection, &answer, sizeof answer, 0, descriptor);
        } while (got < 0 && errno == EINTR);
    }
    if (got != sizeof reply) {
        const bool is_other_version =
            got == sizeof answer.refusal && answer.refusal.mark == VersionRefusal::kMark;
        return fail(is_other_version ? EPROTONOSUPPORT : EIO);
    }
    reply = answer.expected;
    return reply.error == 0 ? 0 : fail(static_cast<int>(reply.error));
}

void set_flags(int descriptor, int flags) {
    if ((flags & O_CLOEXEC) == 0) {
        fcntl(descriptor, F_SETFD, 0);
    }
    if ((flags & O_NONBLOCK) != 0) {
        fcntl(descriptor, F_SETFL, O_NONBLOCK);
    }
}

// Makes the text of now the contents of `file`.
int fill(int file, const char* name) {
    const int connection = connect_to_world();
    if (connection < 0) {
        return -1;
    }
    AttributeReply reply;
    const int asked = ask(connection, RequestKind::kReadAttribute, name, O_RDONLY, reply);
    close(connection);
    if (asked != 0) {
        return -1;
    }
    const std::size_t length = reply.length < sizeof reply.text ? reply.length : sizeof reply.text;
    return pwrite(file, reply.text, length, 0) == static_cast<ssize_t>(length)
               ? ftruncate(file, static_cast<off_t>(length))
               : -1;
}

ino_t inode_of(int descriptor) {
    struct stat about {};
    return syscall(SYS_fstat, descriptor, &about) == 0 ? about.st_ino : 0;
}

// Programs close descriptors that they do not know.
bool holds_control(int descriptor) {
    const OpenFile& file = g_files[descriptor];
    return file.control >= 0 && inode_of(file.control) == file.control_inode;
}

// With the lock held.
void forget(int descriptor) {
    g_kinds[descriptor].store(FileKind::kNone, std::memory_order_relaxed);
    if (holds_control(descriptor)) {
        close(g_files[descriptor].control);
    }
    g_files[descriptor] = {};
}

// With the lock held: those that the program has closed.
void forget_closed() {
    for (int descriptor = 0; descriptor < kMaxDescriptor; ++descriptor) {
        if (g_kinds[descriptor].load(std::memory_order_relaxed) != FileKind::kNone &&
            inode_of(descriptor) != g_files[descriptor].inode) {
            forget(descriptor);
        }
    }
}

// With the lock held.
void note(int descriptor, FileKind kind, int control, const char* name) {
    forget_closed();
    OpenFile& file = g_files[descriptor];
    file.inode = inode_of(descriptor);
    file.control = control;
    file.control_inode = control >= 0 ? inode_of(control) : 0;
    std::memcpy(file.name, name, std::strlen(name) + 1);
    g_kinds[descriptor].store(kind, std::memory_order_release);
}

int open_attribute(const TreePath& path, int flags) {
    if ((flags & O_ACCMODE) != O_RDONLY) {
        return fail(EACCES);
    }
    const int file = memfd_create("simverbs attribute", MFD_CLOEXEC);
    if (file < 0 || fill(file, path.name()) != 0) {
        const int error = errno;
        if (file >= 0) {
            close(file);
        }
        return fail(error);
    }
    set_flags(file, flags);
    if (file < kMaxDescriptor) {  // beyond, it keeps the text of its opening
        const Guard guard;
        note(file, FileKind::kAttribute, -1, path.name());
    }
    return file;
}

int open_device(const TreePath& path, int flags) {
    const int connection = connect_to_world();
    if (connection < 0) {
        return -1;
    }
    OpenDeviceReply reply;
    int descriptor = -1;
    int error = 0;
    if (ask(connection, RequestKind::kOpenDevice, path.name(), flags, reply, &descriptor) != 0) {
        error = errno;
    } else if (descriptor < 0 || descriptor >= kMaxDescriptor) {
        error = EMFILE;
    }
    if (error != 0) {
        close(connection);
        if (descriptor >= 0) {
            close(descriptor);
        }
        return fail(error);
    }
    set_flags(descriptor, flags);
    report_on_signal();
    const Guard guard;
    note(descriptor, FileKind::kDevice, connection, "");
    return descriptor;
}

constexpr int kNoControl = -2;

// -1: closed meanwhile, or another file by now. kNoControl: it cannot be controlled any more.
int control_of(int descriptor) {
    if (inode_of(descriptor) != g_files[descriptor].inode) {
        forget(descriptor);
        return -1;
    }
    return holds_control(descriptor) ? g_files[descriptor].control : kNoControl;
}

bool is_still_device(int descriptor) {
    const Guard guard;
    return kind_of(descriptor) == FileKind::kDevice && control_of(descriptor) != -1;
}

}  // namespace

int open_file(const TreePath& path, int flags) {
    struct stat about {};
    if (syscall(SYS_newfstatat, AT_FDCWD, path.real(), &about, 0) != 0) {
        return -1;
    }
    return S_ISCHR(about.st_mode) ? open_device(path, flags) : open_attribute(path, flags);
}

FileKind kind_of(int descriptor) {
    return descriptor >= 0 && descriptor < kMaxDescriptor
               ? g_kinds[descriptor].load(std::memory_order_acquire)
               : FileKind::kNone;
}

void refresh_attribute(int descriptor) {
    const int error = errno;
    const Guard guard;
    if (inode_of(descriptor) != g_files[descriptor].inode) {
        forget(descriptor);
    } else {
        fill(descriptor, g_files[descriptor].name);
    }
    errno = error;
}

ssize_t read_device(int descriptor, void* bytes, std::size_t count) {
    if (!is_still_device(descriptor)) {
        return syscall(SYS_read, descriptor, bytes, count);
    }
    if (count < sizeof(ib_user_mad_hdr)) {
        return fail(EINVAL);
    }
    LargeMessage large{.mark = 0};
    int file = -1;
    const ssize_t whole = receive(descriptor, &large, sizeof large, MSG_PEEK | MSG_TRUNC, &file);
    if (whole <= 0) {
        return whole == 0 ? fail(ENODEV) : -1;
    }
    const bool is_large = file >= 0 && whole == sizeof large && large.mark == LargeMessage::kMark;
    const std::size_t length = is_large ? large.length : static_cast<std::size_t>(whole);
    const bool fits = length <= count;
    const std::size_t least = sizeof(ib_user_mad_hdr) + kDatagramBytes;
    const std::size_t taken = fits ? length : least;
    ssize_t got = -1;
    if (!fits && count < least) {
        errno = EINVAL;
    } else if (is_large) {
        got = pread(file, bytes, taken, 0);
    } else {
        got = receive(descriptor, bytes, taken, fits ? 0 : MSG_PEEK);
    }
    if (file >= 0) {
        const int error = errno;
        close(file);
        if (is_large && fits) {
            receive(descriptor, &large, sizeof large, MSG_DONTWAIT);
        }
        errno = error;
    }
    return got < 0 || fits ? got : fail(ENOSPC);
}

int pause_before_retry_ms() {
    static std::atomic<bool> was_asked{false};
    constexpr int kPauseMs = 1000;
    return was_asked.exchange(true) ? kPauseMs : 0;
}

int control_device(int descriptor, unsigned long number, void* argument) {
    const Guard guard;
    const int control = control_of(descriptor);
    if (control == -1 || _IOC_TYPE(number) != IB_IOCTL_MAGIC) {
        return static_cast<int>(syscall(SYS_ioctl, descriptor, number, argument));
    }
    if (control == kNoControl) {
        return fail(EIO);
    }
    ControlRequest request;
    request.number = static_cast<std::uint32_t>(number);
    request.length = _IOC_SIZE(number);
    if (request.length > sizeof request.bytes) {
        return fail(ENOTTY);
    }
    if (argument != nullptr) {
        std::memcpy(request.bytes, argument, request.length);
    }
    ControlReply reply;
    ssize_t got = send(control, &request, sizeof request, MSG_NOSIGNAL);
    if (got == sizeof request) {
        await_reply(control);
        do {
            got = receive(control, &reply, sizeof reply, 0);
        } while (got < 0 && errno == EINTR);
    }
    if (got != sizeof reply) {
        return fail(EIO);
    }
    if (argument != nullptr && (_IOC_DIR(number) & _IOC_READ) != 0) {
        std::memcpy(argument, reply.bytes, request.length);
    }
    return reply.error == 0 ? 0 : fail(static_cast<int>(reply.error));
}

}  // namespace simverbs::devices
