// The functions of libc by which sockets speak to other hosts and to the kernel, and that of a
// host's interfaces: see source_address.hpp, rdma_netlink.hpp and host_interfaces.hpp.
#include <cstring>

#include <linux/netlink.h>
#include <sys/uio.h>

#include "simverbs/devices/host_interfaces.hpp"
#include "simverbs/devices/next_function.hpp"
#include "simverbs/devices/rdma_netlink.hpp"
#include "simverbs/devices/source_address.hpp"
#include "simverbs/devices/tree_path.hpp"

using simverbs::devices::next;

namespace {

namespace devices = simverbs::devices;

using SendMessage = ssize_t(int, const msghdr*, int);

SendMessage& next_sendmsg() {
    static auto* const kOriginal = next<SendMessage>("sendmsg");
    return *kOriginal;
}

// IP_PKTINFO names the address of one datagram, and leaves the socket as it is.
ssize_t send_from(in_addr_t source, int socket, msghdr message, int flags) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))] = {};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = IPPROTO_IP;
    head->cmsg_type = IP_PKTINFO;
    head->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
    in_pktinfo info{};
    info.ipi_spec_dst.s_addr = source;
    std::memcpy(CMSG_DATA(head), &info, sizeof info);
    return next_sendmsg()(socket, &message, flags);
}

ssize_t send_netlink(int socket, const void* bytes, size_t count, int flags) {
    iovec part{const_cast<void*>(bytes), count};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    return devices::send_rdma_netlink(socket, message, flags);
}

}  // namespace

INTERPOSED int socket(int family, int type, int protocol) {
    static auto* const kOriginal = next<int(int, int, int)>("socket");
    const bool is_ours =
        family == AF_NETLINK && protocol == NETLINK_RDMA && devices::placement().socket != nullptr;
    return is_ours ? devices::open_rdma_netlink(type) : kOriginal(family, type, protocol);
}

INTERPOSED int bind(int socket, const sockaddr* address, socklen_t length) {
    static auto* const kOriginal = next<int(int, const sockaddr*, socklen_t)>("bind");
    return devices::is_rdma_netlink(socket) ? devices::bind_rdma_netlink(socket, address, length)
                                            : kOriginal(socket, address, length);
}

INTERPOSED int getsockname(int socket, sockaddr* address, socklen_t* length) {
    static auto* const kOriginal = next<int(int, sockaddr*, socklen_t*)>("getsockname");
    return devices::is_rdma_netlink(socket) ? devices::name_rdma_netlink(socket, address, length)
                                            : kOriginal(socket, address, length);
}

// Options of netlink change how errors are reported, which is as without them.
INTERPOSED int setsockopt(int socket, int level, int name, const void* value, socklen_t length) {
    static auto* const kOriginal = next<int(int, int, int, const void*, socklen_t)>("setsockopt");
    return level == SOL_NETLINK && devices::is_rdma_netlink(socket)
               ? 0
               : kOriginal(socket, level, name, value, length);
}

INTERPOSED ssize_t recvmsg(int socket, msghdr* message, int flags) {
    static auto* const kOriginal = next<ssize_t(int, msghdr*, int)>("recvmsg");
    if (!devices::is_rdma_netlink(socket)) [[likely]] {
        return kOriginal(socket, message, flags);
    }
    const socklen_t room = message->msg_namelen;
    const ssize_t got = kOriginal(socket, message, flags);
    message->msg_namelen = room;
    return devices::received_rdma_netlink(got, static_cast<sockaddr*>(message->msg_name),
                                          &message->msg_namelen);
}

INTERPOSED ssize_t recvfrom(int socket, void* bytes, size_t count, int flags, sockaddr* remote,
                            socklen_t* length) {
    using Function = ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*);
    static auto* const kOriginal = next<Function>("recvfrom");
    if (!devices::is_rdma_netlink(socket)) [[likely]] {
        return kOriginal(socket, bytes, count, flags, remote, length);
    }
    const ssize_t got = kOriginal(socket, bytes, count, flags, nullptr, nullptr);
    return devices::received_rdma_netlink(got, remote, length);
}

// _FORTIFY_SOURCE replaces the function above by this one; the name is glibc's.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
INTERPOSED ssize_t __recvfrom_chk(int socket, void* bytes, size_t count, size_t room, int flags,
                                  sockaddr* remote, socklen_t* length) {
    using Function = ssize_t(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
    static auto* const kOriginal = next<Function>("__recvfrom_chk");
    if (!devices::is_rdma_netlink(socket)) [[likely]] {
        return kOriginal(socket, bytes, count, room, flags, remote, length);
    }
    const ssize_t got = kOriginal(socket, bytes, count, room, flags, nullptr, nullptr);
    return devices::received_rdma_netlink(got, remote, length);
}

INTERPOSED ssize_t send(int socket, const void* bytes, size_t count, int flags) {
    static auto* const kOriginal = next<ssize_t(int, const void*, size_t, int)>("send");
    return devices::is_rdma_netlink(socket) ? send_netlink(socket, bytes, count, flags)
                                            : kOriginal(socket, bytes, count, flags);
}

INTERPOSED int connect(int socket, const sockaddr* remote, socklen_t length) {
    static auto* const kOriginal = next<int(int, const sockaddr*, socklen_t)>("connect");
    devices::bind_to_host(socket, remote, length);
    return kOriginal(socket, remote, length);
}

INTERPOSED ssize_t sendto(int socket, const void* bytes, size_t count, int flags,
                          const sockaddr* remote, socklen_t length) {
    using Function = ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t);
    static auto* const kOriginal = next<Function>("sendto");
    if (devices::is_rdma_netlink(socket)) [[unlikely]] {
        return send_netlink(socket, bytes, count, flags);
    }
    const in_addr_t source = devices::source_of_datagram(socket, remote, length);
    if (source == 0) [[likely]] {
        return kOriginal(socket, bytes, count, flags, remote, length);
    }
    iovec part{const_cast<void*>(bytes), count};
    msghdr message{};
    message.msg_name = const_cast<sockaddr*>(remote);
    message.msg_namelen = length;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    return send_from(source, socket, message, flags);
}

// One with control messages of its own goes as it is.
INTERPOSED ssize_t sendmsg(int socket, const msghdr* message, int flags) {
    if (message != nullptr && devices::is_rdma_netlink(socket)) [[unlikely]] {
        return devices::send_rdma_netlink(socket, *message, flags);
    }
    if (message == nullptr || message->msg_controllen != 0) {
        return next_sendmsg()(socket, message, flags);
    }
    const auto* const remote = static_cast<const sockaddr*>(message->msg_name);
    const in_addr_t source = devices::source_of_datagram(socket, remote, message->msg_namelen);
    return source == 0 ? next_sendmsg()(socket, message, flags)
                       : send_from(source, socket, *message, flags);
}

INTERPOSED int getifaddrs(ifaddrs** list) {
    static auto* const kOriginal = next<int(ifaddrs**)>("getifaddrs");
    const int result = kOriginal(list);
    if (result != 0) {
        return result;
    }
    ifaddrs** end = list;
    while (*end != nullptr) {
        end = &(*end)->ifa_next;
    }
    *end = devices::make_interfaces();
    return result;
}

INTERPOSED void freeifaddrs(ifaddrs* list) {
    static auto* const kOriginal = next<void(ifaddrs*)>("freeifaddrs");
    kOriginal(devices::free_interfaces(list));
}
