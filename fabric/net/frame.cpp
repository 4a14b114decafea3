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
