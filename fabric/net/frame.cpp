#include "fabric/net/frame.hpp"

#include "fabric/core/assert.hpp"

namespace fabric {

FramePool::~FramePool() {
    SIMVERBS_ASSERT(live_ == 0, "{} frames outlive their pool", live_);
}

FramePtr FramePool::copy(const Frame& frame) {
    FramePtr made = make();
    Frame* const next = made->next;
    *made = frame;
    made->next = next;
    made->pool = this;
    if (frame.cargo != nullptr) {
        frame.cargo->retain();
    }
    return made;
}

FramePtr FramePool::take_first(Frame& train) {
    FramePtr first = copy_first(train, 1);
    drop_first(train, 1);
    return first;
}

FramePtr FramePool::copy_first(const Frame& train, std::uint16_t packets) {
    SIMVERBS_ASSERT(packets < train.packets, "{} of {} packets", packets, train.packets);
    FramePtr made = copy(train);
    made->cutter->keep_first(*made, packets);
    made->packets = packets;
    made->last_wire_bytes = train.wire_bytes;
    made->last_payload_bytes = train.payload_bytes;
    return made;
}

void FramePool::drop_first(Frame& train, std::uint16_t packets) {
    SIMVERBS_ASSERT(packets < train.packets, "{} of {} packets", packets, train.packets);
    train.cutter->drop_first(train, packets);
    train.packets = static_cast<std::uint16_t>(train.packets - packets);
    if (train.packets == 1) {
        train.wire_bytes = train.last_wire_bytes;
        train.payload_bytes = train.last_payload_bytes;
    }
}

// Frames are handed out in the order of their addresses, which helps the cache and decides nothing.
void FramePool::add_slab() {
    slabs_.push_back(std::make_unique<Frame[]>(kSlabFrames));
    Frame* const slab = slabs_.back().get();
    for (std::size_t i = kSlabFrames; i-- > 0;) {
        slab[i].pool = this;
        slab[i].next = free_;
        free_ = &slab[i];
    }
}

}  // namespace fabric
