// The distribution's librdmacm in this process: whether it calls, and whether it reaches the world.
#pragma once

namespace simverbs::abi {

// Returns true if the code at that address is librdmacm's.
bool is_librdmacm(const void* code);

// Says on stderr, once, what to do where librdmacm calls and no library stands before libc that
// has /dev/infiniband/rdma_cm for it.
void name_missing_rdma_cm();

}  // namespace simverbs::abi
