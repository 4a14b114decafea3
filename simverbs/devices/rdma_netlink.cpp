#include "simverbs/devices/rdma_netlink.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "simverbs/devices/open_files.hpp"
#include "simverbs/devices/world_connection.hpp"
#include "simverbs/protocol/device_protocol.hpp"

namespace simverbs::devices {
namespace {

constexpr std::size_t kMostRequest = 8192;

// Copies an address as getsockname(2) does: as much as there is room for, and its whole length.
void copy_address(const sockaddr_nl& from, sockaddr* address, socklen_t* length) {
    const socklen_t room = *length < sizeof from ? *length : sizeof from;
    std::memcpy(address, &from, room);
    *length = sizeof from;
}

std::uint32_t port_of(int socket) {
    const Guard guard;
    const OpenFile* const file = find_open_file(socket);
    return file == nullptr ? 0 : file->netlink_port;
}

}  // namespace

bool is_rdma_netlink(int descriptor) {
    if (kind_of(descriptor) != FileKind::kRdmaNetlink) [[likely]] {
        return false;
    }
    const Guard guard;
    return find_open_file(descriptor) != nullptr;
}

int open_rdma_netlink(int type) {
    const int connection = connect_to_world();
    if (connection < 0) {
        return fail(EPROTONOSUPPORT);  // as a kernel without RDMA answers
    }
    OpenDeviceReply reply;
    int socket = -1;
    const int asked =
        ask(connection, {RequestKind::kOpenDevice, kRdmaNetlinkName, O_RDWR}, reply, &socket);
    const int error = asked != 0 ? errno : socket < 0 || socket >= kMaxDescriptor ? EMFILE : 0;
    if (error != 0) {
        close(connection);
        if (socket >= 0) {
            close(socket);
        }
        return fail(error);
    }
    if ((type & SOCK_CLOEXEC) == 0) {
        fcntl(socket, F_SETFD, 0);
    }
    if ((type & SOCK_NONBLOCK) != 0) {
        fcntl(socket, F_SETFL, O_NONBLOCK);
    }
    const Guard guard;
    note(socket, FileKind::kRdmaNetlink, connection, "").number = reply.file;
    return socket;
}

int bind_rdma_netlink(int socket, const sockaddr* address, socklen_t length) {
    sockaddr_nl wanted{};
    if (address == nullptr || length < sizeof wanted || address->sa_family != AF_NETLINK) {
        return fail(EINVAL);
    }
    std::memcpy(&wanted, address, sizeof wanted);
    const Guard guard;
    OpenFile* const file = find_open_file(socket);
    if (file == nullptr) {
        return fail(EBADF);
    }
    const std::uint32_t port =
        wanted.nl_pid != 0 ? wanted.nl_pid : static_cast<std::uint32_t>(getpid());
    if (file->netlink_port != 0 && file->netlink_port != port) {
        return fail(EINVAL);
    }
    file->netlink_port = port;
    return 0;
}

int name_rdma_netlink(int socket, sockaddr* address, socklen_t* length) {
    sockaddr_nl own{};
    own.nl_family = AF_NETLINK;
    own.nl_pid = port_of(socket);
    copy_address(own, address, length);
    return 0;
}

// The kernel answers to the port that it knows the socket by, whatever the request says.
ssize_t send_rdma_netlink(int socket, const msghdr& message, int flags) {
    alignas(nlmsghdr) char request[kMostRequest];
    std::size_t length = 0;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
        const iovec& part = message.msg_iov[i];
        if (part.iov_len > sizeof request - length) {
            return fail(EMSGSIZE);
        }
        std::memcpy(request + length, part.iov_base, part.iov_len);
        length += part.iov_len;
    }
    std::uint32_t port = port_of(socket);
    if (port == 0) {
        port = static_cast<std::uint32_t>(getpid());
    }
    std::size_t place = 0;
    while (length - place >= sizeof(nlmsghdr)) {
        nlmsghdr head{};
        std::memcpy(&head, request + place, sizeof head);
        head.nlmsg_pid = port;
        std::memcpy(request + place, &head, sizeof head);
        const std::size_t step = NLMSG_ALIGN(head.nlmsg_len);
        if (step < sizeof head || step > length - place) {
            break;
        }
        place += step;
    }
    const int all_flags = flags | MSG_NOSIGNAL;
    return syscall(SYS_sendto, socket, request, length, all_flags, nullptr, 0);
}

ssize_t received_rdma_netlink(ssize_t received, sockaddr* address, socklen_t* length) {
    if (received == 0) {
        return fail(ENODEV);  // the world has ended
    }
    if (received > 0 && address != nullptr && length != nullptr) {
        sockaddr_nl kernel{};
        kernel.nl_family = AF_NETLINK;
        copy_address(kernel, address, length);
    }
    return received;
}

}  // namespace simverbs::devices
