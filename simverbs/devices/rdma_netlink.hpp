// A socket of NETLINK_RDMA in a program: a socket whose other end the server holds. What tells it
// from one of the kernel are addresses: programs bind it, and look at who has sent a message.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

namespace simverbs::devices {

// A descriptor that was one and has been closed is none.
bool is_rdma_netlink(int descriptor);

// As socket(2) with AF_NETLINK and NETLINK_RDMA.
int open_rdma_netlink(int type);

// As bind(2), getsockname(2) and setsockopt(2) of a descriptor whose kind is kRdmaNetlink. The port
// of an address is the number of the process where the program leaves it to the kernel.
int bind_rdma_netlink(int socket, const sockaddr* address, socklen_t length);
int name_rdma_netlink(int socket, sockaddr* address, socklen_t* length);

// As sendmsg(2), of one request.
ssize_t send_rdma_netlink(int socket, const msghdr& message, int flags);
// Makes what has been received come from the kernel; `received` is recvmsg(2)'s answer, and
// `length` the room for the address, which is given back as its length. Both may be null.
ssize_t received_rdma_netlink(ssize_t received, sockaddr* address, socklen_t* length);

}  // namespace simverbs::devices
