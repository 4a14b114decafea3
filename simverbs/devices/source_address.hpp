// From which address sockets speak to other hosts of the simulation. To the kernel all of them are
// loopback, where it would choose 127.0.0.1; the address of this host takes its place, as a kernel
// with its network interfaces would choose. Refuses IPv6, and sockets that are bound to a port
// alone and connect.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

namespace simverbs::devices {

// Binds a TCP or UDP socket that has no address yet to the address of this host from which it
// reaches `remote`. Other sockets and other addresses stay as they are; errno, too.
void bind_to_host(int socket, const sockaddr* remote, socklen_t length);

// Returns the address from which this host reaches `remote` where the socket is a UDP socket
// without an address, perhaps with a port; else 0. Leaves errno alone.
in_addr_t source_of_datagram(int socket, const sockaddr* remote, socklen_t length);

}  // namespace simverbs::devices
