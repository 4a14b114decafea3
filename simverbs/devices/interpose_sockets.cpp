// The functions of libc by which sockets speak to other hosts, and that of a host's interfaces: see
// source_address.hpp and host_interfaces.hpp.
#include <cstring>

#include <sys/uio.h>

#include "simverbs/devices/host_interfaces.hpp"
#include "simverbs/devices/next_function.hpp"
#include "simverbs/devices/source_address.hpp"

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

}  // namespace

INTERPOSED int connect(int socket, const sockaddr* remote, socklen_t length) {
    static auto* const kOriginal = next<int(int, const sockaddr*, socklen_t)>("connect");
    devices::bind_to_host(socket, remote, length);
    return kOriginal(socket, remote, length);
}

INTERPOSED ssize_t sendto(int socket, const void* bytes, size_t count, int flags,
                          const sockaddr* remote, socklen_t length) {
    using Function = ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t);
    static auto* const kOriginal = next<Function>("sendto");
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
