// /dev/infiniband/rdma_cm in a program: write(2) is a command with an answer. The program's
// descriptor is the read end of a pipe that has a byte in it while an event waits.
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace simverbs::devices {

inline constexpr const char* kRdmaCmName = "/dev/infiniband/rdma_cm";

// As write(2) of a descriptor whose kind is kRdmaCm.
ssize_t write_rdma_cm(int descriptor, const void* bytes, std::size_t count);

// As read(2), which this device does not have.
ssize_t read_rdma_cm(int descriptor, void* bytes, std::size_t count);

}  // namespace simverbs::devices
