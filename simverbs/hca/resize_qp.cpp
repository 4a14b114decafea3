// New sizes for the queues of a queue pair (ibv_modify_qp(3) with CAP; IBA 11.2.5.2): how many work
// requests they hold. What a request may have is fixed when the queue pair is made.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {
namespace {

void copy_slots(const std::byte* from, const WorkQueueShape& old, std::byte* to,
                const WorkQueueShape& shape, std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t index = first; index != end; ++index) {
        std::memcpy(to + std::size_t{index & (shape.slots - 1)} * shape.stride,
                    from + std::size_t{index & (old.slots - 1)} * old.stride, old.stride);
    }
}

}  // namespace

// Follows from the shapes of its rings.
QpCapacity QueuePair::capacity() const {
    QpCapacity capacity;
    capacity.send_requests = send_shape_.limit;
    capacity.send_segments = send_shape_.max_segments;
    capacity.inline_bytes = inline_bytes_;
    capacity.tso_header_bytes = tso_header_bytes_;
    if (const ReceiveRing* const own = receives_.own_ring(); own != nullptr) {
        capacity.receive_requests = own->shape.limit;
        capacity.receive_segments = own->shape.max_segments;
    }
    return capacity;
}

// As much as the rings can be believed.
std::uint32_t QueuePair::sends_waiting() const {
    const std::uint32_t posted =
        rings().send_producer.value.load(std::memory_order_acquire) - progress().first_send;
    return posted > send_shape_.slots ? 0 : posted;
}

// A capacity is at least what is asked for; that of a queue which it has not stays 0.
int QueuePair::check_resize(const QpCapacity& asked) const {
    const DeviceLimits& limits = hca_.personality().limits;
    const QpCapacity own = capacity();
    const bool more_a_request = asked.send_segments > own.send_segments ||
                                (has_receives() && asked.receive_segments > own.receive_segments) ||
                                asked.inline_bytes > own.inline_bytes;
    const bool loses_requests =
        (has_sends() && asked.send_requests < sends_waiting()) ||
        (has_receives() && asked.receive_requests < receives_.waiting(kNoSrq));
    return more_a_request || loses_requests || exceeds(asked.send_requests, limits.max_qp_wr) ||
                   exceeds(asked.receive_requests, limits.max_qp_wr)
               ? EINVAL
               : 0;
}

// Requests keep their indices. False where there is no memory: nothing has changed.
bool QueuePair::resize(const QpCapacity& asked, ModifyQpReply& reply) {
    QpCapacity capacity = this->capacity();
    if (has_sends()) {
        capacity.send_requests =
            rounded(asked.send_requests, hca_.personality().send_queue_rounding);
    }
    if (has_receives()) {
        capacity.receive_requests =
            rounded(asked.receive_requests, hca_.personality().receive_queue_rounding);
    }
    const WorkQueueShape send = send_shape(capacity);
    const WorkQueueShape receive =
        receive_queue_shape(capacity.receive_requests, capacity.receive_segments);
    const RingMemory ring =
        context_->client().make_ring(queue_pair_ring_bytes(send, receive), sizeof(QueuePairRings));
    if (ring.base == nullptr) {
        return false;
    }
    const std::uint32_t sends = sends_waiting();
    const std::uint32_t first_send = progress().first_send;
    reply.sends = first_send + sends;
    std::byte* slots = ring.base + sizeof(QueuePairRings);
    copy_slots(send_slot(0), send_shape_, slots, send, first_send, reply.sends);
    if (const ReceiveRing* const own = receives_.own_ring(); own != nullptr) {
        reply.receives = own->taken + own->waiting();
        copy_slots(own->slots, own->shape, slots + send.bytes(), receive, own->taken,
                   reply.receives);
    }
    auto& head = *reinterpret_cast<QueuePairRings*>(ring.base);
    head.state.value.store(rings().state.value.load());
    head.sends_done.value.store(rings().sends_done.value.load());
    head.send_producer.value.store(reply.sends);
    head.receive_producer.value.store(reply.receives);

    keep_payloads_in_flight();  // they may refer to what the engine is about to move
    if (engine_ != nullptr) {
        engine_->resize(send);
    }
    if (retired_ring_ != nullptr) {
        context_->client().release_ring(retired_ring_->memory);
    }
    retired_ring_.reset(new RetiredRing{ring_, reply.sends});
    ring_ = ring;
    send_shape_ = send;
    receives_.move_ring(ring, send, receive);
    reply.capacity = capacity;
    reply.ring = context_->client().ring_reply(ring);
    return true;
}

// A doorbell that was rung for the ring before: its request is not in this one yet, and the driver
// rings again when it is.
bool QueuePair::is_of_retired_ring(std::uint32_t producer) {
    if (retired_ring_ == nullptr || !retired_ring_->sends_moved) {
        return false;
    }
    const std::uint32_t written = rings().send_producer.value.load(std::memory_order_acquire);
    if (written == *retired_ring_->sends_moved) {
        return producer != written;
    }
    retired_ring_->sends_moved.reset();
    return false;
}

}  // namespace simverbs
