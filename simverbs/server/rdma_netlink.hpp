// Answers requests on sockets of NETLINK_RDMA as a kernel does: devices of a host, their ports,
// objects and counters (<rdma/rdma_netlink.h>; Linux drivers/infiniband/core/nldev.c). `rdma` of
// iproute2 and newer libraries of rdma-core ask. Nothing can be changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/types.h>

#include "simverbs/rdma_cm/rdma_id.hpp"
#include "simverbs/server/netlink_message.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

// An rdma_cm id that a process has.
struct IdOfProcess {
    pid_t process;
    std::uint32_t number;
    const rdma_cm::RdmaId* id;
};

// The host that is asked about.
struct NetlinkHost {
    const Simulation& simulation;
    std::vector<std::size_t> hcas;  // in the order of their names, simverbs0 and so on
    std::vector<IdOfProcess> ids;
};

// Answers what a program has written, of one or more requests: one message an element. What makes
// no sense is answered with an error, or with nothing where it is too short for that, as in Linux.
std::vector<NetlinkBytes> answer_rdma_netlink(const NetlinkHost& host,
                                              std::span<const std::byte> written);

}  // namespace simverbs
