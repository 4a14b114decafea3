// Messages between the preload library and the server of a world about /sys/class/infiniband* and
// /dev/infiniband. Plain structs, since the preload library has no C++ run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simverbs/protocol/request_kind.hpp"

namespace simverbs {

struct DeviceRequest {
    static constexpr std::size_t kMaxPath = 256;
    RequestHead head;
    char host[64] = {};
    char path[kMaxPath] =
        {};                  // "/sys/class/infiniband/simverbs0/node_guid", "/dev/infiniband/umad0"
    std::int32_t flags = 0;  // of open(2)
    std::uint64_t file = 0;  // of kShareDevice
    std::uint32_t address = 0;  // of kSourceAddress: IPv4, 127.77.0.1 is 0x7F4D0001
};

// DeviceRequest::path of kOpenDevice for a socket of NETLINK_RDMA, which no file stands for.
inline constexpr char kRdmaNetlinkName[] = "netlink/rdma";

// Where a tree of folders lies that has a file for each attribute and device, all of them empty.
struct PathReply {
    std::uint32_t error = 0;                  // errno; ENOENT: the topology has no such host
    char path[DeviceRequest::kMaxPath] = {};  // where there is no such host: those that there are
};

struct AttributeReply {
    static constexpr std::size_t kMaxBytes = 4096;  // as of sysfs
    std::uint32_t error = 0;
    std::uint32_t length = 0;
    char text[kMaxBytes] = {};
};

// From which address of its own the host reaches another one.
struct SourceAddressReply {
    std::uint32_t error = 0;  // ENETUNREACH: it has none in that network
    std::uint32_t address = 0;
};

// The IPv4 addresses of a host.
struct HostAddressesReply {
    struct Address {
        std::uint32_t address = 0;
        std::uint32_t prefix_bits = 0;  // of its network
    };
    static constexpr std::uint32_t kMost = 64;  // further ones are left out
    std::uint32_t error = 0;
    std::uint32_t count = 0;
    Address addresses[kMost] = {};
};

struct OpenDeviceReply {
    std::uint32_t error = 0;
    std::uint64_t file = 0;  // the number of the open file, never 0
};

// An ioctl(2), with what its argument points at.
struct ControlRequest {
    static constexpr std::size_t kMaxBytes = 64;
    std::uint32_t number = 0;
    std::uint32_t length = 0;
    unsigned char bytes[kMaxBytes] = {};
};

struct ControlReply {
    std::uint32_t error = 0;
    unsigned char bytes[ControlRequest::kMaxBytes] = {};
};

// A write(2) to /dev/infiniband/rdma_cm: this, the bytes that were written, and those of the option
// that the command names.
struct RdmaCmRequest {
    static constexpr std::size_t kMaxWritten = std::size_t{8} + UINT16_MAX;  // more is left out
    static constexpr std::size_t kMaxOption = 65'536;
    std::uint32_t written = 0;
    std::uint32_t option = 0;              // 0: there is none, or it is not to be read
    std::uint32_t descriptor_is_open = 0;  // of the descriptor that the command names
    // Another thread's command was under way when this one was to be given, and did something.
    std::uint32_t raced = 0;
    std::uint64_t descriptor_file = 0;  // OpenDeviceReply::file; 0: it is none of rdma_cm
};

// This, and the bytes for `address` of the program.
struct RdmaCmReply {
    std::uint32_t error = 0;
    std::uint32_t length = 0;
    std::uint64_t address = 0;
};

// A message that no socket takes in one piece: these bytes, and a descriptor to read them from.
struct LargeMessage {
    static constexpr std::uint64_t kMark = 0x7369'6D76'6C61'7267;
    static constexpr std::size_t kThreshold = std::size_t{64} * 1024;
    std::uint64_t mark = kMark;
    std::uint64_t length = 0;
};

}  // namespace simverbs
