#include "simverbs/hca/receive_source.hpp"

#include <algorithm>

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/hca/receive_slot.hpp"

namespace simverbs {

ReceiveSource::ReceiveSource(Hca& hca, const QueuePairParts& parts) {
    if (parts.srq != nullptr) {
        from_ = parts.srq;
    } else if (parts.xrcd != nullptr) {
        from_ = QueuesOfDomain{&hca, parts.xrcd};
    } else {
        move_ring(parts.ring, parts.send, parts.receive);
    }
}

void ReceiveSource::move_ring(const RingMemory& ring, const WorkQueueShape& send,
                              const WorkQueueShape& receive) {
    if (ReceiveRing* const own = own_ring(); own != nullptr) {
        own->head = reinterpret_cast<const QueuePairRings*>(ring.base);
        own->slots = ring.base + sizeof(QueuePairRings) + send.bytes();
        own->shape = receive;
    }
}

void ReceiveSource::reset() {
    if (ReceiveRing* const own = own_ring(); own != nullptr) {
        own->taken = 0;
    }
}

// An XRC target takes receives of any queue of its domain.
ReceiveProperties ReceiveSource::properties() const {
    if (const ReceiveRing* const own = own_ring(); own != nullptr) {
        return {own->shape.max_segments, false};
    }
    if (const SharedReceiveQueue* const queue = shared_queue(); queue != nullptr) {
        return {queue->max_segments(), true};
    }
    const Personality& personality = std::get<QueuesOfDomain>(from_).hca->personality();
    return {static_cast<std::uint32_t>(personality.limits.max_srq_sge), true};
}

bool ReceiveSource::take(SrqNumber named, RecvWqe& wqe, std::span<Segment> segments,
                         std::uint32_t& index) {
    if (ReceiveRing* const own = own_ring(); own != nullptr) {
        return own->take(wqe, segments, index);
    }
    SharedReceiveQueue* const queue = queue_for(named);
    return queue != nullptr && queue->take(wqe, segments, index);
}

std::uint32_t ReceiveSource::waiting(SrqNumber named) const {
    if (const ReceiveRing* const own = own_ring(); own != nullptr) {
        return own->waiting();
    }
    const SharedReceiveQueue* const queue = queue_for(named);
    return queue == nullptr ? 0 : queue->waiting();
}

SharedReceiveQueue* ReceiveSource::find_named(const QueuesOfDomain& queues, SrqNumber named) {
    SharedReceiveQueue* const queue = queues.hca->srqs().find(named.value());
    const bool serves = queue != nullptr && queue->domain() != nullptr &&
                        queue->domain() == queues.opened->domain.get();
    return serves ? queue : nullptr;
}

std::uint32_t ReceiveRing::waiting() const {
    const std::uint32_t posted =
        head->receive_producer.value.load(std::memory_order_acquire) - taken;
    return posted > shape.slots ? 0 : posted;
}

bool ReceiveRing::take(RecvWqe& wqe, std::span<Segment> segments, std::uint32_t& index) {
    if (waiting() == 0) {
        return false;
    }
    const std::byte* const slot = slots + std::size_t{taken & (shape.slots - 1)} * shape.stride;
    copy_receive(slot, shape, wqe, segments);
    index = taken++;
    return true;
}

}  // namespace simverbs
