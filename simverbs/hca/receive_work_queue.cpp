#include "simverbs/hca/receive_work_queue.hpp"

#include <cerrno>
#include <cstring>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/placement.hpp"
#include "simverbs/hca/receive_slot.hpp"

namespace simverbs {

ReceiveWorkQueue::ReceiveWorkQueue(DeviceContext& context, const ReceiveWorkQueueParts& parts)
    : context_(context),
      pd_(parts.pd),
      cq_(parts.cq),
      ring_(parts.ring),
      shape_(parts.shape),
      number_(parts.number),
      receiver_(context.hca().personality(), parts.shape.max_segments, parts.offloads, *this) {
    ++pd_.uses;
    cq_.add_user(*this);
}

ReceiveWorkQueue::~ReceiveWorkQueue() {
    --pd_.uses;
    cq_.remove_user(*this);
    context_.client().release_ring(ring_);
}

int ReceiveWorkQueue::modify(WqState to) {
    if (!may_move(state_, to, WqTrigger::kModify)) {
        return EINVAL;
    }
    enter(to, WqTrigger::kModify);
    return 0;
}

void ReceiveWorkQueue::posted() {
    if (state_ == WqState::kErr) {
        flush();
    }
}

void ReceiveWorkQueue::receive(const ReceivedFrame& frame) {
    if (state_ == WqState::kReady) {
        if (receiver_.receive(frame)) {
            fail();
        }
    }
}

void ReceiveWorkQueue::lose_completions() {
    if (may_move(state_, WqState::kErr, WqTrigger::kError)) {
        enter(WqState::kErr, WqTrigger::kError);
        context_.raise(AsyncEvent::kWqFatal, number_);
    }
}

void ReceiveWorkQueue::fail() {
    if (may_move(state_, WqState::kErr, WqTrigger::kError)) {
        enter(WqState::kErr, WqTrigger::kError);
    }
}

void ReceiveWorkQueue::enter(WqState to, WqTrigger trigger) {
    const WqState from = state_;
    state_ = to;
    head().state.value.store(static_cast<std::uint32_t>(to), std::memory_order_seq_cst);
    if (from != to) {
        context_.hca().trace(WqStateChanged{context_.hca().node(), number_, from, to, trigger});
    }
    if (to == WqState::kErr) {
        receiver_.flush();
        flush();
    } else if (to == WqState::kReset) {
        receiver_.reset();
        taken_ = 0;
        head().producer.value.store(0, std::memory_order_release);
    }
}

void ReceiveWorkQueue::flush() {
    RecvWqe wqe;
    std::uint32_t index = 0;
    while (take_receive(kNoSrq, wqe, {}, index)) {
        ReceiveCompletion completion;
        completion.wr_id = wqe.wr_id;
        completion.status = WcStatus::kWrFlushErr;
        completion.cause = FaultCause::kFlushed;
        completion.freed_to = index + 1;
        complete(completion);
    }
}

Grant ReceiveWorkQueue::open_receive(SrqNumber /*srq*/, const Segment& segment) {
    return context_.hca().keys().open_local(pd_, segment, Access::kLocalWrite);
}

CopyOutcome ReceiveWorkQueue::place(SrqNumber /*srq*/, const Payload& from,
                                    std::span<const MemorySpan> spans, std::uint64_t offset) {
    return place_payload(from, context_.client().memory(), spans, offset);
}

bool ReceiveWorkQueue::take_receive(SrqNumber /*srq*/, RecvWqe& wqe, std::span<Segment> segments,
                                    std::uint32_t& index) {
    const std::uint32_t posted = head().producer.value.load(std::memory_order_acquire) - taken_;
    if (posted == 0 || posted > shape_.slots) {
        return false;
    }
    const std::byte* slot = ring_.base + sizeof(WorkQueueRing) +
                            std::size_t{taken_ & (shape_.slots - 1)} * shape_.stride;
    copy_receive(slot, shape_, wqe, segments);
    index = taken_++;
    return true;
}

void ReceiveWorkQueue::delivered(MessageKind kind, std::uint64_t length) {
    context_.hca().trace(MessageDelivered{context_.hca().node(), number_, kind, length});
}

bool ReceiveWorkQueue::complete(const ReceiveCompletion& completion) {
    Hca& hca = context_.hca();
    const Personality& personality = hca.personality();
    const WorkCompleted record{
        hca.node(),        cq_.handle(),      number_,          completion.freed_to - 1,
        completion.status, completion.opcode, completion.cause, completion.byte_length};
    Cqe entry;
    entry.wr_id = completion.wr_id;
    entry.timestamp_ps = static_cast<std::uint64_t>(to_picoseconds(hca.loop().now()));
    entry.status = static_cast<std::uint8_t>(completion.status);
    entry.opcode = static_cast<std::uint8_t>(completion.opcode);
    entry.byte_length = completion.byte_length;
    entry.qpn = number_;
    entry.freed_to = completion.freed_to;
    entry.flow_tag = completion.flow_tag;
    entry.cvlan = completion.cvlan;
    entry.queue = CompletedQueue::kWork;
    if (completion.ip_checksum_holds) {
        entry.wc_flags = static_cast<std::uint32_t>(WcFlag::kIpCsumOk);
    }
    const bool failed = completion.status != WcStatus::kSuccess;
    if (failed) {
        entry.vendor_error = vendor_err(personality, completion.cause,
                                        consequences(personality, completion.cause).responder);
    }
    cq_.push(entry, record, failed);
    return state_ != WqState::kErr;
}

}  // namespace simverbs
