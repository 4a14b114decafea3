// The functions of this library that libsimverbs-rdmacm.so calls, where system calls of the program
// are about /dev/infiniband/rdma_cm.
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace simverbs::abi {

inline constexpr const char* kRdmaCmPath = "/dev/infiniband/rdma_cm";
// A path that only libsimverbs-rdmacm.so knows: it is there where that library stands before libc.
inline constexpr const char* kInterposedPath = "/dev/infiniband/rdma_cm/interposed";

}  // namespace simverbs::abi

extern "C" {

// Returns 1 if this process has an embedded world, so that the device is there.
int simverbs_rdma_cm_exists();
// Returns 1 if that descriptor may be an open file of the device. Quick.
int simverbs_rdma_cm_has(int descriptor);

// As the system calls of the device. `simverbs_rdma_cm_write`: of a descriptor that
// simverbs_rdma_cm_has() and that is another file by now, as write(2) of that one.
int simverbs_rdma_cm_open(int flags);
ssize_t simverbs_rdma_cm_write(int descriptor, const void* bytes, size_t count);
int simverbs_rdma_cm_close(int descriptor);
// Returns 1 if the descriptor is one of the device still.
int simverbs_rdma_cm_is_open(int descriptor);
// `copy` is a new descriptor of the same file; below 0: there is none.
void simverbs_rdma_cm_copied(int descriptor, int copy);

}  // extern "C"
