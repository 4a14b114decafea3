// The effects of the engine of a queue pair; how its state changes is in modify_qp.cpp.
#include "simverbs/hca/queue_pair.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/core/assert.hpp"

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/spread_engine.hpp"
#include "simverbs/transport/message_engine.hpp"
#include "simverbs/transport/raw_packet.hpp"

namespace simverbs {
namespace {

fabric::EventKey timer_key(NodeId node, EngineTimer timer, std::uint32_t qpn) {
    return {fabric::EventClass::kTimer, node, fabric::PortNumber(static_cast<std::uint16_t>(timer)),
            qpn};
}

std::optional<HwCounter> counter_of(MessageKind executed) {
    switch (executed) {
        case MessageKind::kWrite:
        case MessageKind::kAtomicWrite:
            return HwCounter::kRxWriteRequests;
        case MessageKind::kRead:
            return HwCounter::kRxReadRequests;
        case MessageKind::kCompareSwap:
        case MessageKind::kFetchAdd:
            return HwCounter::kRxAtomicRequests;
        default:
            return std::nullopt;
    }
}

}  // namespace

QueuePair::QueuePair(Hca& hca, DeviceContext& context, const QueuePairParts& parts)
    : hca_(hca),
      context_(&context),
      pd_(parts.pd),
      send_cq_(parts.send_cq),
      receive_cq_(parts.receive_cq),
      receives_(hca, parts),
      ring_(parts.ring),
      send_shape_(parts.send),
      attributes_(fresh_attributes(parts.service, parts.qpn)),
      handle_(parts.qpn),
      ordinal_(hca.count_queue_pair()),
      inline_bytes_(static_cast<std::uint16_t>(parts.capacity.inline_bytes)),
      tso_header_bytes_(static_cast<std::uint16_t>(parts.capacity.tso_header_bytes)),
      offloads_(parts.offloads),
      blocks_own_multicast_(parts.blocks_own_multicast),
      spreads_frames_(parts.table != nullptr) {
    if (parts.table != nullptr) {
        engine_ = std::make_unique<SpreadEngine>(*parts.table, parts.hash);
    }
    if (pd_ != nullptr) {
        ++pd_->uses;
    }
    if (send_cq_ != nullptr) {
        send_cq_->add_user(*this);
    }
    if (receive_cq_ != nullptr) {
        receive_cq_->add_user(*this);
    }
    if (SharedReceiveQueue* const queue = receives_.shared_queue(); queue != nullptr) {
        queue->add_user(*this);
    }
    if (OpenedXrcDomain* const opened = receives_.xrc_domain(); opened != nullptr) {
        ++opened->uses;
    }
}

void QueuePair::make_engine() {
    Effects& effects = *this;
    const Personality& personality = hca_.personality();
    if (attributes_.service == Service::kRawPacket) {
        engine_ = std::make_unique<RawPacketEngine>(attributes_, personality, send_shape_,
                                                    receives_.properties().max_segments, offloads_,
                                                    engine_memory(), effects);
    } else {
        SharedReceiveQueue* const queue = receives_.shared_queue();
        engine_ = std::make_unique<MessageEngine>(
            attributes_, personality, send_shape_, receives_.properties(),
            queue == nullptr ? nullptr : queue->tags(), engine_memory(), effects);
    }
    if (congestion_ != nullptr) {
        engine_->set_rate(congestion_->reaction);
    }
    if (receives_packets(attributes_.state)) {
        engine_->start_receiving();
    }
    if (attributes_.state == QpState::kRts || attributes_.state == QpState::kSqd) {
        engine_->start_sending();
    }
}

bool QueuePair::spreads_by(const IndirectionTable& table) const {
    return spreads_frames_ && &static_cast<const SpreadEngine&>(*engine_).table() == &table;
}

QpMemory QueuePair::engine_memory() const {
    return {&context_->client().memory(), &hca_.own_memory()};
}

QueuePair::~QueuePair() {
    keep_payloads_in_flight();
    if (send_cq_ != nullptr) {
        send_cq_->remove_user(*this);
    }
    if (receive_cq_ != nullptr) {
        receive_cq_->remove_user(*this);
    }
    if (SharedReceiveQueue* const queue = receives_.shared_queue(); queue != nullptr) {
        queue->remove_user(*this);
    }
    if (OpenedXrcDomain* const opened = receives_.xrc_domain(); opened != nullptr) {
        --opened->uses;
    }
    if (pd_ != nullptr) {
        --pd_->uses;
    }
    if (retired_ring_ != nullptr) {
        context_->client().release_ring(retired_ring_->memory);
    }
    context_->client().release_ring(ring_);
}

void QueuePair::posted_sends(std::uint32_t producer) {
    if (is_of_retired_ring(producer)) [[unlikely]] {
        return;
    }
    engine().post(producer);
    if (attributes_.state == QpState::kErr || attributes_.state == QpState::kSqe) {
        engine().flush_sends();
        return;
    }
    run_engine([](Engine& engine) { return engine.run(); });
}

// A receive needs no doorbell while the queue pair lives; in ERR it is flushed (IBA 10.3.1.7).
void QueuePair::posted_receives(std::uint32_t /*producer*/) {
    if (attributes_.state == QpState::kErr && hca_.personality().flushes_receives_posted_in_err) {
        flush_receives();
    }
}

void QueuePair::packet_arrived(const Packet& packet) {
    if (!receives_packets(attributes_.state)) {
        hca_.discard(packet, PacketFate::kQueuePairNotReady);
        return;
    }
    run_engine([&packet](Engine& engine) { return engine.receive(packet); });
    if (std::exchange(sends_of_device_, false)) [[unlikely]] {
        run_engine([](Engine& engine) { return engine.run(); });
    }
    report_drained();
}

void QueuePair::frame_arrived(const ReceivedFrame& frame, const FrameHeaders& headers) {
    if (spreads_frames_ || receives_packets(attributes_.state)) {
        run_engine([&](Engine& engine) { return engine.receive_frame(frame, headers); });
    }
}

void QueuePair::source_unreadable(Psn psn) {
    run_engine([psn](Engine& engine) { return engine.fail_source(psn); });
}

void QueuePair::handle(const fabric::Event& event) {
    const auto which = static_cast<EngineTimer>(event.argument);
    if (tells_followers(event)) {
        hca_.settle_for_reads_of(*this);
    }
    if (which == EngineTimer::kAlpha || which == EngineTimer::kIncrease) {
        congestion().reaction.timer_expired(which, engine().idle());
        run_engine([](Engine& engine) { return engine.run(); });
    } else {
        run_engine([which](Engine& engine) { return engine.timer_expired(which); });
        report_drained();
    }
}

void QueuePair::describe() const {
    const SharedReceiveQueue* const queue = receives_.shared_queue();
    hca_.trace(QueuePairDescribed{hca_.node(), attributes_.qpn, attributes_.service,
                                  send_cq_ == nullptr ? 0 : send_cq_->handle(),
                                  receive_cq_ == nullptr ? 0 : receive_cq_->handle(),
                                  queue == nullptr ? 0 : queue->number(), attributes_.state});
}

void QueuePair::decided(const TagDecision& decision) {
    hca_.trace(TagLookedUp{hca_.node(), attributes_.qpn, receives_.shared_queue()->number(),
                           decision.tag, decision.outcome, decision.handle, decision.by_device});
}

// It goes when the packet under way has been dealt with.
void QueuePair::send_of_device(const DeviceWork& request) {
    engine_->add(request);
    sends_of_device_ = true;
}

void QueuePair::source_fault(const Packet& packet) {
    hca_.report_source_fault(packet);
}

FetchVerdict QueuePair::fetch_send(std::uint32_t index, SendWqe& wqe, std::span<std::byte> tail) {
    const std::byte* slot = send_slot(index);
    std::memcpy(&wqe, slot, sizeof wqe);
    std::size_t used = (wqe.flags & static_cast<std::uint8_t>(SendFlag::kInline)) != 0
                           ? wqe.inline_length
                           : wqe.segment_count * sizeof(Segment);
    if (wqe.opcode == static_cast<std::uint8_t>(WrOpcode::kTso)) {
        used = tail.size();  // its header stands behind all segments that there may be
    }
    std::copy_n(slot + sizeof wqe, std::min(used, tail.size()), tail.begin());
    // A request that is only flushed is not executed.
    if (hca_.faults() != nullptr && attributes_.state == QpState::kRts) [[unlikely]] {
        if (const auto fault = hca_.faults()->work_request(*this, CompletedQueue::kSend)) {
            return {fault->status, fault->cause};
        }
    }
    return {};
}

bool QueuePair::take_receive(SrqNumber srq, RecvWqe& wqe, std::span<Segment> segments,
                             std::uint32_t& index) {
    if (hca_.withholds_receive()) [[unlikely]] {
        return false;
    }
    return receives_.take(srq, wqe, segments, index);
}

void QueuePair::delivered(MessageKind kind, std::uint64_t length) {
    if (const auto counter = counter_of(kind)) {
        count(*counter);
    }
    if (counters_ != nullptr) {
        counters_->carried_out(kind);
    }
    ++messages_received_;
    if (writes_memory(kind)) {
        context_->client().memory_written();
    }
    hca_.trace(MessageDelivered{hca_.node(), attributes_.qpn, kind, length});
}

void QueuePair::push(CompletionQueue& cq, const Cqe& entry, const WorkCompleted& record,
                     bool urgent, CompletedQueue queue) {
    if (hca_.faults() != nullptr) [[unlikely]] {
        if (const auto delay = hca_.faults()->completion(*this, queue); delay.count() > 0) {
            cq.delay_next(delay);
        }
    }
    cq.push(entry, record, urgent);
}

bool QueuePair::complete(const SendCompletion& completion, bool signaled) {
    if (!hca_.personality().slot_freed_by_polled_completion) {
        rings().sends_done.value.store(completion.freed_to, std::memory_order_release);
    }
    if (counters_ != nullptr) {
        counters_->completed(completion.opcode, completion.status);
    }
    if (!signaled) {
        return true;
    }
    const WorkCompleted record{
        hca_.node(),       send_cq_->handle(), attributes_.qpn,  completion.freed_to - 1,
        completion.status, completion.opcode,  completion.cause, completion.byte_length};
    Cqe entry;
    entry.wr_id = completion.wr_id;
    entry.timestamp_ps = static_cast<std::uint64_t>(to_picoseconds(hca_.loop().now()));
    entry.status = static_cast<std::uint8_t>(completion.status);
    entry.opcode = static_cast<std::uint8_t>(completion.opcode);
    entry.byte_length = completion.byte_length;
    if (completion.has_immediate) {
        entry.wc_flags = static_cast<std::uint32_t>(WcFlag::kWithImm);
    }
    entry.qpn = attributes_.qpn;
    entry.freed_to = completion.freed_to;
    entry.queue = CompletedQueue::kSend;
    const bool failed = completion.status != WcStatus::kSuccess;
    if (failed) {
        entry.vendor_error =
            vendor_err(hca_.personality(), completion.cause,
                       consequences(hca_.personality(), completion.cause).requester);
        forget_opcode(entry);
        count(completion.status == WcStatus::kWrFlushErr ? HwCounter::kReqCqeFlushError
                                                         : HwCounter::kReqCqeError);
    }
    // Two processes with a world each draw the same numbers: the peer then looks like this one.
    const auto is_own_peer = [this] {
        return attributes_.dest_qpn == attributes_.qpn &&
               leads_back(hca_.port(attributes_.port), attributes_.path);
    };
    if (completion.status == WcStatus::kRetryExcErr &&
        (is_own_peer() || !hca_.was_ever(attributes_.dest_qpn))) {
        context_->client().peer_never_was(attributes_.dest_qpn);
    }
    push(*send_cq_, entry, record, failed, CompletedQueue::kSend);
    return !failure_;
}

bool QueuePair::complete(const ReceiveCompletion& completion) {
    if (hca_.faults() != nullptr && completion.status == WcStatus::kSuccess) [[unlikely]] {
        if (const auto fault = hca_.faults()->work_request(*this, CompletedQueue::kReceive)) {
            ReceiveCompletion failed = completion;
            failed.status = fault->status;
            failed.cause = fault->cause;
            complete(failed);
            fail(QpTrigger::kQpError, fault->cause);
            return false;
        }
    }
    if (counters_ != nullptr) {
        counters_->completed(completion.opcode, completion.status);
    }
    const SharedReceiveQueue* const queue = receives_.queue_for(completion.srq);
    CompletionQueue& cq = queue != nullptr && queue->cq() != nullptr ? *queue->cq() : *receive_cq_;
    const WorkCompleted record{
        hca_.node(),       cq.handle(),       attributes_.qpn,  completion.freed_to - 1,
        completion.status, completion.opcode, completion.cause, completion.byte_length};
    Cqe entry;
    entry.wr_id = completion.wr_id;
    entry.timestamp_ps = static_cast<std::uint64_t>(to_picoseconds(hca_.loop().now()));
    entry.status = static_cast<std::uint8_t>(completion.status);
    entry.opcode = static_cast<std::uint8_t>(completion.opcode);
    entry.byte_length = completion.byte_length;
    entry.immediate = completion.immediate;
    entry.qpn = attributes_.qpn;
    entry.source_qpn = attributes_.dest_qpn;
    if (completion.has_immediate) {
        entry.wc_flags = static_cast<std::uint32_t>(WcFlag::kWithImm);
    } else if (completion.invalidated) {
        entry.wc_flags = static_cast<std::uint32_t>(WcFlag::kWithInv);
    } else if (completion.ip_checksum_holds) {
        entry.wc_flags = static_cast<std::uint32_t>(WcFlag::kIpCsumOk);
    }
    entry.flow_tag = completion.flow_tag;
    entry.cvlan = completion.cvlan;
    entry.slid = attributes_.path.dlid;
    entry.sl = attributes_.path.sl;
    entry.pkey_index = attributes_.pkey_index;
    entry.freed_to = completion.freed_to;
    entry.queue = CompletedQueue::kReceive;
    if (queue != nullptr) {
        entry.freed_to = queue->number();
        entry.queue = CompletedQueue::kShared;
        if (queue->tags() != nullptr) [[unlikely]] {
            describe_tag(completion, entry);
        }
    }
    if (!properties(attributes_.service).connected) {
        describe_datagram(completion, entry);
    }
    const bool failed = completion.status != WcStatus::kSuccess;
    if (failed) {
        entry.vendor_error =
            vendor_err(hca_.personality(), completion.cause,
                       consequences(hca_.personality(), completion.cause).responder);
        forget_opcode(entry);
        count(completion.status == WcStatus::kWrFlushErr ? HwCounter::kRespCqeFlushError
                                                         : HwCounter::kRespCqeError);
        if (completion.status == WcStatus::kLocLenErr) {
            count(HwCounter::kRespLocalLengthError);
        }
    } else if (properties(attributes_.service).connected &&
               hca_.personality().connected_receive_has_grh_flag) {
        entry.wc_flags |= static_cast<std::uint32_t>(WcFlag::kGrh);
        entry.source_qpn = 0;  // as Linux rxe leaves it
    }
    push(cq, entry, record, failed || completion.solicited, CompletedQueue::kReceive);
    return !failure_;
}

void QueuePair::describe_tag(const ReceiveCompletion& completion, Cqe& entry) const {
    entry.wc_flags |= completion.tag_flags.bits;
    if (completion.has_tag) {
        put_tag_info(completion.tag, entry);
    }
    if (completion.buffer != nullptr) {
        put_tag_place(receives_.shared_queue()->number(), completion.buffer->handle, entry);
        entry.tag_generation = completion.buffer->generation;
    }
}

// Clears the opcode of a failed completion unless the personality keeps it.
void QueuePair::forget_opcode(Cqe& entry) const {
    if (!hca_.personality().failed_completion_keeps_opcode && entry.queue != CompletedQueue::kTag) {
        entry.opcode = 0;
    }
}

void QueuePair::flush_receives() {
    ReceiveRing* const ring = receives_.own_ring();
    if (ring == nullptr) {
        return;
    }
    RecvWqe wqe;
    std::uint32_t index = 0;
    while (ring->take(wqe, {}, index)) {
        ReceiveCompletion completion;
        completion.wr_id = wqe.wr_id;
        completion.status = WcStatus::kWrFlushErr;
        completion.cause = FaultCause::kFlushed;
        completion.freed_to = index + 1;
        complete(completion);
    }
}

// Frames of this queue pair on their way get bytes of their own: what they refer to is about to be
// the application's again.
void QueuePair::keep_payloads_in_flight() {
    hca_.keep_payloads(
        [this](const fabric::Frame& frame) { return frame.flow == attributes_.qpn; });
}

void QueuePair::stop_timers() {
    keep_payloads_in_flight();
    cancel_timers();
}

void QueuePair::cancel_timers() {
    if (timers_ == nullptr) {
        return;
    }
    for (const std::unique_ptr<fabric::Timer>& timer : *timers_) {
        if (timer != nullptr) {
            timer->cancel();
        }
    }
}

void QueuePair::count(HwCounter counter) {
    hca_.hw_counters(attributes_.port).count(counter);
}

void QueuePair::raise(AsyncEvent event) {
    if (!hca_.personality().raises_queue_pair_events && event != AsyncEvent::kSqDrained) {
        return;
    }
    context_->raise(event, attributes_.qpn, handle_);
    for (const QpOpening& opening : openings()) {
        opening.context->raise(event, attributes_.qpn, opening.handle);
    }
}

fabric::Timer& QueuePair::timer(EngineTimer which) {
    if (timers_ == nullptr) [[unlikely]] {
        timers_ = std::make_unique<std::array<std::unique_ptr<fabric::Timer>, kEngineTimers>>();
    }
    std::unique_ptr<fabric::Timer>& timer = (*timers_)[static_cast<std::size_t>(which)];
    if (timer == nullptr) [[unlikely]] {
        fabric::EventHandler& handler = *this;
        timer = std::make_unique<fabric::Timer>(hca_.loop(),
                                                timer_key(hca_.node(), which, attributes_.qpn),
                                                handler, static_cast<std::uint64_t>(which));
    }
    return *timer;
}

void QueuePair::arm(EngineTimer which, fabric::SimDuration after) {
    timer(which).arm_in(after);
}

bool QueuePair::armed(EngineTimer which) const {
    const fabric::Timer* timer = find_timer(which);
    return timer != nullptr && timer->armed();
}

void QueuePair::disarm(EngineTimer which) {
    if (fabric::Timer* timer = find_timer(which); timer != nullptr) {
        timer->cancel();
    }
}

std::byte* QueuePair::send_slot(std::uint32_t index) const {
    return ring_.base + sizeof(QueuePairRings) +
           std::size_t{index & (send_shape_.slots - 1)} * send_shape_.stride;
}

}  // namespace simverbs
