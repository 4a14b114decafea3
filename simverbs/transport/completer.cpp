// The requester's side of answers: acknowledgments, NAKs, READ and atomic responses (IBA 9.7.7).
#include "fabric/core/assert.hpp"

#include "simverbs/transport/requester.hpp"

namespace simverbs {
namespace {

std::optional<HwCounter> counter_of(NakCode code) {
    switch (code) {
        case NakCode::kPsnSequenceError:
            return HwCounter::kPacketSeqErr;
        case NakCode::kInvalidRequest:
            return HwCounter::kReqRemoteInvalidRequest;
        case NakCode::kRemoteAccessError:
            return HwCounter::kReqRemoteAccessErrors;
        case NakCode::kRemoteOperationalError:
        case NakCode::kInvalidRdRequest:
            return std::nullopt;
    }
    return std::nullopt;
}

// Returns the status of a request that a NAK other than a sequence error names (IBA 9.9.2.4.2).
WcStatus status_of(NakCode code) {
    switch (code) {
        case NakCode::kRemoteAccessError:
            return WcStatus::kRemAccessErr;
        case NakCode::kRemoteOperationalError:
            return WcStatus::kRemOpErr;
        case NakCode::kInvalidRdRequest:
            return WcStatus::kRemInvRdReqErr;
        case NakCode::kInvalidRequest:
        case NakCode::kPsnSequenceError:
            break;
    }
    return WcStatus::kRemInvReqErr;
}

}  // namespace

EngineResult Requester::receive(const Packet& packet) {
    if (stopped() || !awaited(packet.psn)) {
        effects_.discarded(packet, PacketFate::kNotAwaited);
        return {};  // a duplicate, or of an earlier life of the queue pair
    }
    if (packet.operation().kind == MessageKind::kAck) {
        receive_ack(packet);
    } else if (packet.is_placed) {
        take_response_train(packet);
    } else {
        receive_response(packet);
    }
    return run();
}

bool Requester::awaited(Psn psn) const {
    return distance(oldest_psn_, psn) >= 0 && distance(psn, sent_end_) > 0;
}

void Requester::receive_ack(const Packet& packet) {
    switch (packet.syndrome.kind) {
        case AethKind::kAck:
            if (!acknowledge_before(packet.psn + 1)) {
                response_lost(packet);
            }
            return;
        case AethKind::kRnrNak:
            receive_rnr_nak(packet);
            return;
        case AethKind::kNak:
            if (const auto code = packet.syndrome.nak_code()) {
                receive_nak(packet, *code);
            }
            return;
    }
}

void Requester::receive_nak(const Packet& packet, NakCode code) {
    if (!acknowledge_before(packet.psn)) {
        response_lost(packet);
        return;
    }
    if (stopped()) {
        return;
    }
    if (const auto counter = counter_of(code)) {
        effects_.count(*counter);
    }
    if (code == NakCode::kPsnSequenceError) {
        if (!is_recovering(state_)) {
            retry_from(packet.psn, FaultCause::kSequenceRetriesUsedUp);
        }
        return;
    }
    fail_oldest(status_of(code), packet.cause);
}

// Waiting for a receive uses neither the acknowledgment timer nor the retry counter
// (IBA 9.7.5.2.8); with some devices the timer goes on, and ends the wait.
void Requester::receive_rnr_nak(const Packet& packet) {
    if (!acknowledge_before(packet.psn)) {
        response_lost(packet);
        return;
    }
    if (stopped() || waits_for_receive(state_)) {
        return;
    }
    effects_.count(HwCounter::kRnrNakRetryErr);
    ++rnr_naks_;
    if (attributes_.rnr_retry != kRnrRetryForever) {
        if (rnr_retries_left_ == 0) {
            fail_oldest(WcStatus::kRnrRetryExcErr, FaultCause::kRnrRetriesUsedUp);
            return;
        }
        --rnr_retries_left_;
    }
    move(RequesterEvent::kRnrNak);
    if (!personality_.rnr_wait_uses_ack_timer) {
        effects_.disarm(EngineTimer::kAcknowledge);
    }
    effects_.arm(EngineTimer::kRnr, rnr_timer(packet.syndrome.value));
}

void Requester::receive_response(const Packet& packet) {
    if (!acknowledge_before(packet.psn)) {
        response_lost(packet);
        return;
    }
    if (stopped()) {
        return;
    }
    const std::uint32_t index = unacknowledged_;
    SendRequest& request = window_.at(index);
    const MessageKind kind = packet.operation().kind;
    if (!request.expects_response() || kind != response_to(request.opcode->message)) {
        const FaultCause cause = FaultCause::kResponseMismatch;
        fail_oldest(*consequences(personality_, cause).requester.status, cause);
        return;
    }
    if (!request.opcode->returns_data) {
        take_empty_response(packet, request);
        return;
    }
    // Devices look at the local key when data lands, not before the request is sent.
    const bool is_first = request.responses == 0;
    if ((is_first || effects_.key_generation() != request.key_generation) &&
        !open_spans(request, index)) {
        fail_oldest(request.failure, request.cause);
        return;
    }
    if (kind == MessageKind::kReadResponse) {
        take_read_response(packet, request, index);
    } else {
        take_atomic_response(packet, request, index);
    }
}

// Takes the response to a FLUSH or an ATOMIC WRITE, which has been carried out (IBA A19.4.2).
void Requester::take_empty_response(const Packet& packet, SendRequest& request) {
    if (packet.payload.length != 0) {
        fail_oldest(WcStatus::kLocLenErr, FaultCause::kReadLengthMismatch);
        return;
    }
    ++request.responses;
    acknowledge_oldest();
    complete_acknowledged();
}

void Requester::take_read_response(const Packet& packet, SendRequest& request,
                                   std::uint32_t index) {
    const std::uint64_t offset = std::uint64_t{request.responses} * attributes_.path_mtu;
    const std::uint64_t left = request.length - offset;
    const bool last = request.responses + 1 == request.packets;
    const std::uint64_t due = last ? left : attributes_.path_mtu;
    if (packet.payload.length != due || packet.operation().ends_message != last) {
        fail_oldest(WcStatus::kLocLenErr, FaultCause::kReadLengthMismatch);
        return;
    }
    const std::span<const MemorySpan> spans = window_.spans(index).subspan(0, request.span_count);
    if (effects_.place(kNoSrq, packet.payload, spans, offset) != CopyOutcome::kCopied) {
        fail_oldest(WcStatus::kLocProtErr, FaultCause::kLandingRange);
        return;
    }
    ++request.responses;
    progress(request.next_response_psn());
    if (last) {
        acknowledge_oldest();
        complete_acknowledged();
    }
}

void Requester::take_atomic_response(const Packet& packet, SendRequest& request,
                                     std::uint32_t index) {
    std::uint64_t original = packet.compare;
    MemorySpan source{reinterpret_cast<std::uint64_t>(&original), sizeof original};
    const Payload payload{memory_.device, &source, 0, sizeof original, 1};
    const std::span<const MemorySpan> spans = window_.spans(index).subspan(0, request.span_count);
    if (effects_.place(kNoSrq, payload, spans, 0) != CopyOutcome::kCopied) {
        fail_oldest(WcStatus::kLocProtErr, FaultCause::kLandingRange);
        return;
    }
    ++request.responses;
    acknowledge_oldest();
    complete_acknowledged();
}

// Every PSN before `end` has reached the responder. False when the answer to a READ or atomic among
// them is missing: an implicit NAK (IBA 9.7.5.1.1).
bool Requester::acknowledge_before(Psn end) {
    bool complete = true;
    while (unacknowledged_ != window_.fetched()) {
        const SendRequest& request = window_.at(unacknowledged_);
        if (!request.started) {
            break;
        }
        if (request.expects_response()) {
            complete = distance(request.next_response_psn(), end) <= 0;
            break;
        }
        if (distance(request.end_psn(), end) < 0) {
            if (distance(oldest_psn_, end) > 0) {
                progress(end);
            }
            break;
        }
        acknowledge_oldest();
    }
    complete_acknowledged();
    return complete || stopped();
}

void Requester::acknowledge_oldest() {
    SendRequest& request = window_.at(unacknowledged_);
    request.acknowledged = true;
    const Psn end = request.end_psn();
    ++unacknowledged_;
    retire_local();
    progress(end);
}

// Something new was acknowledged: the retry counters and the timer start afresh.
void Requester::progress(Psn oldest) {
    oldest_psn_ = oldest;
    retries_left_ = attributes_.retry_count;
    rnr_retries_left_ = attributes_.rnr_retry;
    rnr_naks_ = 0;
    move(RequesterEvent::kAcknowledged);
    effects_.disarm(EngineTimer::kAcknowledge);
    // A late answer to the first transmission may overtake the second.
    if (static_cast<std::int32_t>(unacknowledged_ - cursor_) > 0) {
        cursor_ = unacknowledged_;
        cursor_packet_ = 0;
    }
    if (cursor_ == unacknowledged_ && cursor_ != window_.fetched()) {
        const SendRequest& request = window_.at(cursor_);
        const std::int32_t done = distance(request.first_psn, oldest_psn_);
        if (request.started && done > static_cast<std::int32_t>(cursor_packet_)) {
            cursor_packet_ = static_cast<std::uint32_t>(done);
        }
    }
}

void Requester::complete_acknowledged() {
    while (!stopped() && window_.head() != unacknowledged_) {
        complete_head(WcStatus::kSuccess, FaultCause::kSuccess);
    }
}

}  // namespace simverbs
