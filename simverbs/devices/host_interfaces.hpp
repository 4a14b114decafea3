// The addresses of this host as those of network interfaces: getifaddrs(3). To the kernel they are
// addresses of loopback without an entry of their own; here they are aliases of it, lo:0, lo:1 ...,
// that other hosts can be reached by, so that programs which look for an interface with an RDMA
// device (libfabric) find one. Refuses IPv6.
#pragma once

#include <ifaddrs.h>

namespace simverbs::devices {

// Returns the entries of this host, ended by nullptr; nullptr: there are none, or there is no
// memory. For free_interfaces().
ifaddrs* make_interfaces();

// Frees the entries of ours at the end of a list. Returns what is left of it.
ifaddrs* free_interfaces(ifaddrs* list);

}  // namespace simverbs::devices
