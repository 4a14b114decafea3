// A receive as it lies in the ring of its queue, whichever kind of queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

// Copies it: what is checked afterwards is the copy. Segments beyond the slot or `segments` stay.
inline void copy_receive(const std::byte* slot, const WorkQueueShape& shape, RecvWqe& wqe,
                         std::span<Segment> segments) {
    std::memcpy(&wqe, slot, sizeof wqe);
    const std::size_t most = std::min<std::size_t>(shape.max_segments, segments.size());
    if (const std::size_t count = std::min<std::size_t>(wqe.segment_count, most); count > 0) {
        std::memcpy(segments.data(), slot + sizeof wqe, count * sizeof(Segment));
    }
}

}  // namespace simverbs
