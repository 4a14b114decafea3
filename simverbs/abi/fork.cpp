// fork() and registered memory. A NIC holds pages by DMA, so that a write after fork() could leave
// parent and device with different pages, and ibv_fork_init() exists to prevent it. Our devices
// hold no pages: they reach memory through the process, parent or child, and see what it sees. That
// is what a kernel that copies pinned pages at fork (5.12 and later) answers too: nothing is
// needed, every call succeeds at any time. RDMAV_FORK_SAFE, IBV_FORK_SAFE and RDMAV_HUGEPAGES_SAFE
// therefore change nothing.
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/provider_abi.hpp"

int simverbs_abi_ibv_fork_init() {
    return 0;
}

ibv_fork_status simverbs_abi_ibv_is_fork_initialized() {
    return IBV_FORK_UNNEEDED;
}

int simverbs_abi_ibv_dontfork_range(void* /*base*/, std::size_t /*size*/) {
    return 0;
}

int simverbs_abi_ibv_dofork_range(void* /*base*/, std::size_t /*size*/) {
    return 0;
}
