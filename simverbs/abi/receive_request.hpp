// One receive on its way into its slot of a queue, whichever kind of queue.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <infiniband/verbs.h>

#include "simverbs/driver/queues.hpp"

namespace simverbs::abi {

// With the queue's lock held. An errno, after which the request does not exist; the device may see
// it after the queue is published.
inline int put_receive(driver::WorkQueue& queue, const ibv_recv_wr& wr) {
    if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > queue.shape().max_segments) {
        return EINVAL;
    }
    std::byte* slot = queue.free_slot();
    if (slot == nullptr) {
        return ENOMEM;
    }
    const RecvWqe wqe{wr.wr_id, static_cast<std::uint32_t>(wr.num_sge), 0};
    std::memcpy(slot, &wqe, sizeof wqe);
    std::copy_n(wr.sg_list, wr.num_sge, reinterpret_cast<ibv_sge*>(slot + sizeof wqe));
    queue.push();
    return 0;
}

}  // namespace simverbs::abi
