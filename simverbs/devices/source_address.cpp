#include "simverbs/devices/source_address.hpp"

#include <cerrno>
#include <cstring>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/devices/tree_path.hpp"
#include "simverbs/devices/world_connection.hpp"

namespace simverbs::devices {
namespace {

// fabric/net/ethernet.hpp: hosts are in 127.77.0.0/16, in VLANs in the networks behind it.
constexpr in_addr_t kFirstHost = 0x7F4D'0000;
constexpr in_addr_t kLastLoopback = 0x7FFF'FFFF;

// Host's byte order; 0: it is no address of a host.
in_addr_t address_of_host(const sockaddr* remote, socklen_t length) {
    if (remote == nullptr || length < sizeof(sockaddr_in) || remote->sa_family != AF_INET) {
        return 0;
    }
    sockaddr_in address;
    std::memcpy(&address, remote, sizeof address);
    const in_addr_t host = ntohl(address.sin_addr.s_addr);
    return host >= kFirstHost && host <= kLastLoopback && placement().tree != nullptr ? host : 0;
}

// The kernel's own answers: a library that is preloaded, too, has sockets of its own. 0: it is no
// socket of IPv4 without an address.
int type_without_address(int socket, in_port_t& port) {
    sockaddr_in own{};
    socklen_t length = sizeof own;
    if (syscall(SYS_getsockname, socket, &own, &length) != 0 || own.sin_family != AF_INET ||
        own.sin_addr.s_addr != INADDR_ANY) {
        return 0;
    }
    port = own.sin_port;
    int type = 0;
    length = sizeof type;
    return syscall(SYS_getsockopt, socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 ? type : 0;
}

// Network byte order; 0: the world has ended, or the host has no address in that network.
in_addr_t ask_for_source(in_addr_t host) {
    int cancel_state = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    SourceAddressReply reply;
    const int connection = connect_to_world();
    const bool known = connection >= 0 &&
                       ask(connection, {RequestKind::kSourceAddress, "", 0, 0, host}, reply) == 0;
    if (connection >= 0) {
        close(connection);
    }
    pthread_setcancelstate(cancel_state, nullptr);
    return known ? htonl(reply.address) : 0;
}

}  // namespace

void bind_to_host(int socket, const sockaddr* remote, socklen_t length) {
    const in_addr_t host = address_of_host(remote, length);
    if (host == 0) [[likely]] {
        return;
    }
    const int error = errno;
    in_port_t port = 0;
    const int type = type_without_address(socket, port);
    const bool may_be_bound = (type == SOCK_STREAM || type == SOCK_DGRAM) && port == 0;
    if (sockaddr_in own{}; may_be_bound && (own.sin_addr.s_addr = ask_for_source(host)) != 0) {
        own.sin_family = AF_INET;
        // connect(2) chooses the port, as it would without this: for this peer alone.
        const int later = 1;
        int before = 0;
        socklen_t size = sizeof before;
        syscall(SYS_getsockopt, socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &before, &size);
        syscall(SYS_setsockopt, socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
        syscall(SYS_bind, socket, &own, sizeof own);
        syscall(SYS_setsockopt, socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &before, size);
    }
    errno = error;
}

in_addr_t source_of_datagram(int socket, const sockaddr* remote, socklen_t length) {
    const in_addr_t host = address_of_host(remote, length);
    if (host == 0) [[likely]] {
        return 0;
    }
    const int error = errno;
    in_port_t port = 0;
    const in_addr_t source =
        type_without_address(socket, port) == SOCK_DGRAM ? ask_for_source(host) : 0;
    errno = error;
    return source;
}

}  // namespace simverbs::devices
