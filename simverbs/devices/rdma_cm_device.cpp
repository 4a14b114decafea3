#include "simverbs/devices/rdma_cm_device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "simverbs/devices/open_files.hpp"
#include "simverbs/devices/world_connection.hpp"

namespace simverbs::devices {
namespace {

// The bytes of a command that name something else of the program: header, and the longer of them.
struct CommandHead {
    rdma_ucm_cmd_hdr header;
    union {
        rdma_ucm_set_option option;
        rdma_ucm_migrate_id migration;
    };
};

// The command channel of this process. -1 with errno: the world has ended. A forked process does
// not share its parent's, where each could take the other's answer.
int channel_of(OpenFile& file) {
    const int inherited = control_of(file);
    if (inherited >= 0 && file.control_process == getpid()) {
        return inherited;
    }
    const int connection = connect_to_world();
    if (connection < 0) {
        return fail(EIO);
    }
    OpenDeviceReply reply;
    if (ask(connection, {RequestKind::kShareDevice, kRdmaCmName, O_RDWR, file.number}, reply) !=
        0) {
        close(connection);
        return fail(EIO);
    }
    if (inherited >= 0) {
        close(inherited);
    }
    set_control(file, connection);
    return connection;
}

// Copies what may not be readable; how much of it is.
std::size_t copy_head(CommandHead& head, const void* bytes, std::size_t count) {
    const std::size_t wanted = std::min(count, sizeof head);
    const iovec from{const_cast<void*>(bytes), wanted};
    const iovec to{&head, wanted};
    const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (got >= 0) {
        return static_cast<std::size_t>(got);
    }
    if (errno == EFAULT) {
        return 0;
    }
    std::memcpy(&head, bytes, wanted);  // the call is forbidden here
    return wanted;
}

struct Command {
    RdmaCmRequest request;
    const void* bytes;
    const void* option = nullptr;
    bool is_get_event = false;
};

// Looks up what the command refers to besides its bytes.
Command read_command(const void* bytes, std::size_t count) {
    Command command{.request = {}, .bytes = bytes};
    command.request.written =
        static_cast<std::uint32_t>(std::min(count, RdmaCmRequest::kMaxWritten));
    CommandHead head{};
    const std::size_t known = copy_head(head, bytes, count);
    const auto holds = [known](std::size_t payload) {
        return known >= sizeof head.header + payload;
    };
    if (!holds(0)) {
        return command;
    }
    command.is_get_event = head.header.cmd == RDMA_USER_CM_CMD_GET_EVENT;
    if (head.header.cmd == RDMA_USER_CM_CMD_SET_OPTION && holds(sizeof head.option) &&
        head.option.optlen <= RdmaCmRequest::kMaxOption) {
        command.option = reinterpret_cast<const void*>(head.option.optval);
        command.request.option = head.option.optlen;
    }
    if (head.header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID && holds(sizeof head.migration)) {
        const auto other = static_cast<int>(head.migration.fd);
        command.request.descriptor_is_open = fcntl(other, F_GETFD) >= 0 ? 1 : 0;
        const OpenFile* const file =
            noted_kind_of(other) == FileKind::kRdmaCm ? find_open_file(other) : nullptr;
        command.request.descriptor_file = file == nullptr ? 0 : file->number;
    }
    return command;
}

// The kernel reads the program's memory, so that a bad address is EFAULT.
int send_command(int channel, Command& command) {
    iovec parts[3] = {{&command.request, sizeof command.request},
                      {const_cast<void*>(command.bytes), command.request.written},
                      {const_cast<void*>(command.option), command.request.option}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 3;
    ssize_t sent = 0;
    do {
        sent = sendmsg(channel, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EFAULT && command.request.option != 0) {
            command.request.option = 0;  // for the server to say
            parts[2].iov_len = 0;
            sent = sendmsg(channel, &message, MSG_NOSIGNAL);
        }
    } while (sent < 0 && errno == EINTR);
    return sent >= 0 ? 0 : fail(errno == EFAULT ? EFAULT : EIO);
}

// And it writes the program's memory.
int take_answer(int channel) {
    RdmaCmReply reply;
    await_reply(channel);
    ssize_t got = 0;
    do {
        got = recv(channel, &reply, sizeof reply, MSG_PEEK);
    } while (got < 0 && errno == EINTR);
    if (got != sizeof reply) {
        return fail(EIO);
    }
    iovec parts[2] = {{&reply, sizeof reply},
                      {reinterpret_cast<void*>(reply.address), reply.length}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    do {
        got = recvmsg(channel, &message, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return fail(errno == EFAULT ? EFAULT : EIO);
    }
    return reply.error == 0 ? 0 : fail(static_cast<int>(reply.error));
}

// A pipe that nobody reads what is in it, for tee(2). It stays for the life of the process.
struct Scratch {
    int ends[2] = {-1, -1};
    ino_t inode = 0;
};
Scratch g_scratch;

// False: there is no descriptor for it.
bool take_scratch(Scratch& scratch) {
    const Guard guard;
    if (g_scratch.inode == 0 || inode_of(g_scratch.ends[1]) != g_scratch.inode) {
        if (pipe2(g_scratch.ends, O_CLOEXEC) != 0) {
            g_scratch = {};
            return false;
        }
        g_scratch.inode = inode_of(g_scratch.ends[1]);
    }
    scratch = g_scratch;
    return true;
}

// Waits until the pipe has a byte, which stays there, or until its other end is closed; -1 with
// errno after a signal. tee(2) goes on waiting after a handler with SA_RESTART, as the kernel's
// write does; poll(2) never does.
int wait_for_event(int descriptor) {
    Scratch scratch;
    if (!take_scratch(scratch)) {
        pollfd look{descriptor, POLLIN, 0};
        return poll(&look, 1, -1) < 0 ? -1 : 0;
    }
    const ssize_t copied = tee(descriptor, scratch.ends[1], 1, 0);
    if (copied == 1) {
        char byte = 0;
        syscall(SYS_read, scratch.ends[0], &byte, 1);
    }
    return copied < 0 ? -1 : 0;
}

// Says if the last command, of whichever thread, did anything: a look for an event that is not
// there does not. Under the lock.
bool g_last_had_effect = false;

// `is_get_event` tells what the command was. EBADF: the descriptor is another file by now.
int execute(int descriptor, const void* bytes, std::size_t count, bool& is_get_event) {
    const Guard guard;
    OpenFile* const file = find_open_file(descriptor);
    if (file == nullptr) {
        return fail(EBADF);
    }
    Command command = read_command(bytes, count);
    is_get_event = command.is_get_event;
    const int channel = channel_of(*file);
    command.request.raced = guard.has_waited() && g_last_had_effect ? 1 : 0;
    if (channel < 0 || send_command(channel, command) != 0) {
        return -1;
    }
    const int result = take_answer(channel);
    g_last_had_effect = result == 0 || !is_get_event || errno != EAGAIN;
    return result;
}

bool is_still_open(int descriptor) {
    const Guard guard;
    return find_open_file(descriptor) != nullptr;
}

}  // namespace

ssize_t write_rdma_cm(int descriptor, const void* bytes, std::size_t count) {
    while (is_still_open(descriptor)) {
        bool is_get_event = false;
        if (execute(descriptor, bytes, count, is_get_event) == 0) {
            return static_cast<ssize_t>(count);
        }
        const bool is_empty = is_get_event && errno == EAGAIN;
        if (!is_empty || (fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0) {
            return -1;
        }
        if (wait_for_event(descriptor) != 0) {
            return -1;
        }
    }
    return syscall(SYS_write, descriptor, bytes, count);
}

ssize_t read_rdma_cm(int descriptor, void* bytes, std::size_t count) {
    return is_still_open(descriptor) ? fail(EINVAL) : syscall(SYS_read, descriptor, bytes, count);
}

}  // namespace simverbs::devices
