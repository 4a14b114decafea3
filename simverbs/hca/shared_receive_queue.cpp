#include "simverbs/hca/shared_receive_queue.hpp"

#include <cstring>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/receive_slot.hpp"

namespace simverbs {

SharedReceiveQueue::SharedReceiveQueue(DeviceContext& context, const SharedReceiveQueueParts& parts)
    : context_(context),
      pd_(parts.pd),
      xrcd_(parts.xrcd),
      cq_(parts.cq),
      ring_(parts.ring),
      shape_(parts.shape),
      number_(parts.number),
      limit_(parts.limit) {
    ++pd_.uses;
    if (xrcd_ != nullptr) {
        ++xrcd_->uses;
    }
    if (cq_ != nullptr) {
        cq_->add_shared_user();
    }
    if (parts.tags > 0) {
        matching_.reset(new Matching{TagList(parts.tags), parts.operations});
    }
}

SharedReceiveQueue::~SharedReceiveQueue() {
    --pd_.uses;
    if (xrcd_ != nullptr) {
        --xrcd_->uses;
    }
    if (cq_ != nullptr) {
        cq_->remove_shared_user();
    }
    if (retired_.base != nullptr) {
        context_.client().release_ring(retired_);
    }
    context_.client().release_ring(ring_);
}

std::uint32_t SharedReceiveQueue::waiting() const {
    const std::uint32_t posted = head().producer.value.load(std::memory_order_acquire) - taken_;
    return dead_ || posted > shape_.slots ? 0 : posted;
}

QuerySrqReply SharedReceiveQueue::query() const {
    return {shape_.limit, shape_.max_segments, limit_};
}

bool SharedReceiveQueue::take(RecvWqe& wqe, std::span<Segment> segments, std::uint32_t& index) {
    if (waiting() == 0) {
        return false;
    }
    copy_receive(slot(taken_), shape_, wqe, segments);
    index = taken_++;
    check_limit();
    return true;
}

void SharedReceiveQueue::set_limit(std::uint32_t limit) {
    trace_move(limit > 0 ? SrqTrigger::kSetLimit : SrqTrigger::kClearLimit);
    limit_ = limit;
    if (context_.hca().personality().srq_limit_fires_when_already_below) {
        check_limit();
    }
}

void SharedReceiveQueue::trace_move(SrqTrigger trigger) const {
    const SrqState from = dead_        ? SrqState::kErr
                          : limit_ > 0 ? SrqState::kLimitArmed
                                       : SrqState::kUnlimited;
    Hca& hca = context_.hca();
    if (const SrqTransition* row = find_transition(from, trigger); row != nullptr) {
        hca.trace(SrqStateChanged{hca.node(), number_, from, row->to, trigger});
    }
}

void SharedReceiveQueue::check_limit() {
    if (limit_ > 0 && waiting() < limit_) {
        trace_move(SrqTrigger::kBelowLimit);
        limit_ = 0;
        context_.raise(AsyncEvent::kSrqLimitReached, number_);
    }
}

std::uint32_t SharedReceiveQueue::replace_ring(RingMemory ring, const WorkQueueShape& shape) {
    const std::uint32_t count = waiting();
    const std::uint32_t first = taken_;
    for (std::uint32_t i = 0; i < count; ++i) {
        std::memcpy(ring.base + sizeof(SharedReceiveRing) + std::size_t{i} * shape.stride,
                    slot(first + i), shape_.stride);
    }
    reinterpret_cast<SharedReceiveRing*>(ring.base)->producer.value.store(
        count, std::memory_order_release);
    if (retired_.base != nullptr) {
        context_.client().release_ring(retired_);
    }
    retired_ = ring_;
    ring_ = ring;
    shape_ = shape;
    taken_ = 0;
    return first;
}

void SharedReceiveQueue::fail() {
    if (dead_) {
        return;
    }
    trace_move(SrqTrigger::kUnreadable);
    dead_ = true;
    context_.raise(AsyncEvent::kSrqErr, number_);
    const std::vector<QueuePair*> users = users_;
    for (QueuePair* qp : users) {
        qp->fail(QpTrigger::kQpError, FaultCause::kSrqRingUnreadable);
    }
}

}  // namespace simverbs
