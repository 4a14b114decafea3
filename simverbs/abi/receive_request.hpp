// One receive on its way into its slot of a queue, whichever kind of queue.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include <infiniband/verbs.h>

#include "simverbs/abi/buffer_watch.hpp"
#include "simverbs/driver/queues.hpp"

namespace simverbs::abi {

// The queue that receives are posted to, as far as mistakes are to be named (SIMVERBS_WARN=1).
struct WatchedReceives {
    BufferWatch* watch;  // null: they are not
    BufferWatch::Queue queue;
    std::optional<Misuse> mistake;  // found in the last of them that had one
};

// With the queue's lock held. An errno, after which the request does not exist; the device may see
// it after the queue is published.
inline int put_receive(driver::WorkQueue& queue, const ibv_recv_wr& wr, WatchedReceives& watched) {
    if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > queue.shape().max_segments) {
        return EINVAL;
    }
    std::byte* slot = queue.free_slot();
    if (slot == nullptr) {
        return ENOMEM;
    }
    const std::span<const ibv_sge> segments(wr.sg_list, static_cast<std::size_t>(wr.num_sge));
    const RecvWqe wqe{wr.wr_id, static_cast<std::uint32_t>(wr.num_sge), 0};
    std::memcpy(slot, &wqe, sizeof wqe);
    std::ranges::copy(segments, reinterpret_cast<ibv_sge*>(slot + sizeof wqe));
    if (watched.watch != nullptr) [[unlikely]] {
        const auto mistake =
            watched.watch->posted(watched.queue, queue.producer(), wr.wr_id, segments, false);
        watched.mistake = mistake ? mistake : watched.mistake;
    }
    queue.push();
    return 0;
}

}  // namespace simverbs::abi
