// Which descriptors of this process are /dev/infiniband/rdma_cm, and which open file each is. A
// descriptor may be closed behind our back, and its number be used for something else: the inode
// tells. Without a lock, which a thread might hold as the process forks.
#pragma once

#include <atomic>
#include <cstdint>

#include <sys/types.h>

#include "simverbs/driver/embedded_rdma_cm.hpp"

namespace simverbs::abi {

class RdmaCmDescriptors {
  public:
    // Beyond it none is kept.
    static constexpr int kMax = 4096;

    // Returns whether the descriptor has been noted, and not forgotten.
    static bool has(int descriptor);
    // Returns 0 if it is another file by now, which is then forgotten.
    static driver::RdmaCmFileNumber find(int descriptor);
    // Returns true if the process inherited it: the file is its parent's.
    static bool is_inherited(int descriptor);
    // False: there is no room for that number.
    static bool note(int descriptor, driver::RdmaCmFileNumber file);
    static void copy(int descriptor, int copy);
    static void forget(int descriptor);
    // Returns true if some descriptor of the process is that file.
    static bool any(driver::RdmaCmFileNumber file);
};

// The threads that are in a call of rdma_cm: the world stays meanwhile.
class RdmaCmCalls {
  public:
    RdmaCmCalls() { ++s_count; }
    ~RdmaCmCalls() { --s_count; }
    RdmaCmCalls(const RdmaCmCalls&) = delete;
    RdmaCmCalls& operator=(const RdmaCmCalls&) = delete;

    static unsigned count() { return s_count; }
    // In a forked child, where the other threads are not.
    static void forget() { s_count = 0; }

  private:
    static inline std::atomic<unsigned> s_count{0};
};

}  // namespace simverbs::abi
