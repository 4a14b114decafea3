// Which descriptors of this process are files of the tree. A descriptor may be closed behind our
// back, and its number be used for something else: the inode tells.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "simverbs/protocol/device_protocol.hpp"

namespace simverbs::devices {

// Beyond it nothing is kept.
inline constexpr int kMaxDescriptor = 1024;

// The kind of an open file: whether its system calls are ours; kNone as quickly as may be. kNone of
// all files while this thread has the lock: the calls that we make then are not the program's, and
// the number of a descriptor that we have opened may be one that the program has closed.
enum class FileKind : unsigned char { kNone, kAttribute, kDevice, kRdmaCm, kRdmaNetlink };
FileKind kind_of(int descriptor);

struct OpenFile {
    ino_t inode = 0;
    int control = -1;  // of a device; descriptors of one file may share it
    ino_t control_inode = 0;
    pid_t control_process = 0;             // that connected it
    std::uint64_t number = 0;              // OpenDeviceReply::file
    std::uint32_t netlink_port = 0;        // of a socket of NETLINK_RDMA
    char name[DeviceRequest::kMaxPath]{};  // as the program knows it; of a socket empty
};

// Holds the lock that the functions below need. A child is made while no thread of its parent has
// it.
class Guard {
  public:
    Guard();
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    // Returns true if another thread had the lock.
    [[nodiscard]] bool has_waited() const { return has_waited_; }

  private:
    bool has_waited_ = false;
    int cancel_state_ = 0;  // a thread is not cancelled while it has the lock
};

ino_t inode_of(int descriptor);

// Returns what kind_of() says to threads without the lock.
FileKind noted_kind_of(int descriptor);
// nullptr: closed meanwhile, or another file by now.
OpenFile* find_open_file(int descriptor);
// -1: the program has closed it, or never had one.
int control_of(const OpenFile& file);
void set_control(OpenFile& file, int control);

OpenFile& note(int descriptor, FileKind kind, int control, const char* name);
// `copy` is another descriptor of the same file, by dup(2) or the like.
void note_copy(int descriptor, int copy);

}  // namespace simverbs::devices
