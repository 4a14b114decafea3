#include "simverbs/devices/device_files.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "simverbs/devices/attribute_status.hpp"
#include "simverbs/devices/rdma_cm_device.hpp"
#include "simverbs/devices/report_signal.hpp"
#include "simverbs/devices/world_connection.hpp"
#include "simverbs/protocol/device_protocol.hpp"

namespace simverbs::devices {
namespace {

constexpr std::size_t kDatagramBytes = 256;

void set_flags(int descriptor, int flags) {
    if ((flags & O_CLOEXEC) == 0) {
        fcntl(descriptor, F_SETFD, 0);
    }
    if ((flags & O_NONBLOCK) != 0) {
        fcntl(descriptor, F_SETFL, O_NONBLOCK);
    }
}

int read_attribute(const char* name, AttributeReply& reply) {
    const int connection = connect_to_world();
    if (connection < 0) {
        return -1;
    }
    const int asked = ask(connection, {RequestKind::kReadAttribute, name, O_RDONLY}, reply);
    close(connection);
    return asked;
}

// Makes the text of now the contents of `file`.
int fill(int file, const char* name) {
    AttributeReply reply;
    if (read_attribute(name, reply) != 0) {
        return -1;
    }
    const std::size_t length = reply.length < sizeof reply.text ? reply.length : sizeof reply.text;
    return pwrite(file, reply.text, length, 0) == static_cast<ssize_t>(length)
               ? ftruncate(file, static_cast<off_t>(length))
               : -1;
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
    if (ask(connection, {RequestKind::kOpenDevice, path.name(), flags}, reply, &descriptor) != 0) {
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
    const bool is_rdma_cm = std::strcmp(path.name(), kRdmaCmName) == 0;
    const Guard guard;
    const FileKind kind = is_rdma_cm ? FileKind::kRdmaCm : FileKind::kDevice;
    note(descriptor, kind, connection, path.name()).number = reply.file;
    return descriptor;
}

bool is_still_open(int descriptor) {
    const Guard guard;
    return find_open_file(descriptor) != nullptr;
}

}  // namespace

int open_file(const TreePath& path, int flags) {
    struct stat about {};
    if (syscall(SYS_newfstatat, AT_FDCWD, path.real(), &about, 0) != 0) {
        return -1;
    }
    return S_ISCHR(about.st_mode) ? open_device(path, flags) : open_attribute(path, flags);
}

bool find_attribute(int descriptor, struct stat& found) {
    const int error = errno;
    const Guard guard;
    const OpenFile* const file = find_open_file(descriptor);
    bool is_found = false;
    if (file != nullptr) {
        const TreePath path(AT_FDCWD, file->name);
        is_found = path.is_ours() && syscall(SYS_newfstatat, AT_FDCWD, path.real(), &found, 0) == 0;
        if (is_found) {
            complete_attribute(path.name(), found);
        }
    }
    errno = error;
    return is_found;
}

void refresh_attribute(int descriptor) {
    const int error = errno;
    const Guard guard;
    if (const OpenFile* const file = find_open_file(descriptor)) {
        fill(descriptor, file->name);
    }
    errno = error;
}

ssize_t read_device(int descriptor, void* bytes, std::size_t count) {
    if (!is_still_open(descriptor)) {
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

ssize_t write_device(int descriptor, const void* bytes, std::size_t count) {
    for (;;) {
        const ssize_t written = syscall(SYS_write, descriptor, bytes, count);
        if (written >= 0 || errno != EAGAIN || !is_still_open(descriptor)) {
            return written;
        }
        pollfd full{descriptor, POLLOUT, 0};
        if (syscall(SYS_ppoll, &full, 1, nullptr, nullptr, 0) < 0 && errno != EINTR) {
            return -1;
        }
    }
}

// The kernel writes it as "231:64" into the attribute `dev` of the device.
bool find_device_number(const char* name, dev_t& number) {
    const int error = errno;
    constexpr struct {
        const char* prefix;
        const char* folder;
    } kClasses[] = {{"umad", "/sys/class/infiniband_mad/"},
                    {"issm", "/sys/class/infiniband_mad/"},
                    {"uverbs", "/sys/class/infiniband_verbs/"},
                    {"rdma_cm", "/sys/class/misc/"}};
    const char* const slash = std::strrchr(name, '/');
    const char* const node = slash == nullptr ? name : slash + 1;
    for (const auto& row : kClasses) {
        if (std::strncmp(node, row.prefix, std::strlen(row.prefix)) != 0) {
            continue;
        }
        char attribute[DeviceRequest::kMaxPath];
        const int length = std::snprintf(attribute, sizeof attribute, "%s%s/dev", row.folder, node);
        AttributeReply reply;
        const bool is_known =
            length < static_cast<int>(sizeof attribute) && read_attribute(attribute, reply) == 0;
        errno = error;
        if (!is_known) {
            return false;
        }
        char* end = nullptr;
        const unsigned long major_number = std::strtoul(reply.text, &end, 10);
        const unsigned long minor_number = std::strtoul(end + 1, nullptr, 10);
        number = makedev(static_cast<unsigned>(major_number), static_cast<unsigned>(minor_number));
        return true;
    }
    return false;
}

void describe_device(int descriptor, mode_t& mode, dev_t& number) {
    const int error = errno;
    const Guard guard;
    const OpenFile* const file = find_open_file(descriptor);
    if (file != nullptr && find_device_number(file->name, number)) {
        constexpr mode_t kReadWriteForAll = 0666;
        mode = S_IFCHR | kReadWriteForAll;
    }
    errno = error;
}

int pause_before_retry_ms() {
    static std::atomic<bool> was_asked{false};
    constexpr int kPauseMs = 1000;
    return was_asked.exchange(true) ? kPauseMs : 0;
}

void copied(int descriptor, int copy) {
    const int error = errno;
    const Guard guard;
    note_copy(descriptor, copy);
    errno = error;
}

int control_device(int descriptor, unsigned long number, void* argument) {
    const Guard guard;
    const OpenFile* const file = find_open_file(descriptor);
    if (file == nullptr || _IOC_TYPE(number) != IB_IOCTL_MAGIC) {
        return static_cast<int>(syscall(SYS_ioctl, descriptor, number, argument));
    }
    const int control = control_of(*file);
    if (control == -1) {
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
