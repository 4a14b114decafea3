// Files of the tree that are open in this process: attributes as memory files with the text of the
// moment at which they are read from their beginning, devices as sockets whose other end the server
// holds. A device also has a connection for ioctl(2), which is not a descriptor that the program
// knows.
#pragma once

#include <cstddef>

#include <sys/types.h>

#include "simverbs/devices/open_files.hpp"
#include "simverbs/devices/tree_path.hpp"

namespace simverbs::devices {

// As open(2); `path` is ours and no folder.
int open_file(const TreePath& path, int flags);

// To be called before an attribute is read from its beginning: its text is that of now.
void refresh_attribute(int descriptor);

// As read(2) of /dev/infiniband/umadN: a datagram that does not fit stays where it is.
ssize_t read_device(int descriptor, void* bytes, std::size_t count);

// As write(2) of /dev/infiniband/umadN: O_NONBLOCK is for reading alone, as with Linux, where
// datagrams queue without a limit. Here it waits until the server has taken some of them.
ssize_t write_device(int descriptor, const void* bytes, std::size_t count);

// Describes an open device as fstat(2) does: its type and number.
void describe_device(int descriptor, mode_t& mode, dev_t& number);

// How long poll(2) of a device waits before it answers that the world has ended: not the first
// time, then a second. OpenSM tries again for ever and would write a line each time.
int pause_before_retry_ms();

// `copy` is another descriptor of the file now, by dup(2) or the like; below 0: that has failed.
void copied(int descriptor, int copy);

// As ioctl(2).
int control_device(int descriptor, unsigned long number, void* argument);

}  // namespace simverbs::devices
