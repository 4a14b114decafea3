// The last checks of a request: carrying it out, and what follows when that is done.
#include <algorithm>

#include "simverbs/transport/responder.hpp"

namespace simverbs {

Responder::Verdict Responder::execute(const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    if (operation.kind == MessageKind::kRead || operation.kind == MessageKind::kFlush) {
        // Data written before a FLUSH has been placed: nothing is left to do for it.
        remember(packet);
        return Verdict::kPassed;
    }
    if (operation.kind == MessageKind::kAtomicWrite) {
        return execute_atomic_write(packet);
    }
    if (is_atomic(operation.kind)) {
        return execute_atomic(packet);
    }
    FaultCause cause = FaultCause::kSuccess;
    Payload payload = packet.payload;
    if (operation.kind == MessageKind::kSend) {
        const std::uint64_t skipped = operation.starts_message ? receive_.unplaced : 0;
        payload.offset += skipped;
        payload.length -= static_cast<std::uint32_t>(skipped);
        if (!open_receive(packet, inbound_.received + skipped - receive_.unplaced, payload.length,
                          cause)) {
            return fail(packet, cause);
        }
    }
    if (payload.length > 0) {
        switch (effects_.place(packet.srq, payload, spans_, 0)) {
            case CopyOutcome::kCopied:
                break;
            case CopyOutcome::kSourceFault:
                effects_.source_fault(packet);
                return Verdict::kAnswered;
            case CopyOutcome::kDestinationFault:
                return fail(packet, operation.kind == MessageKind::kSend
                                        ? FaultCause::kReceiveRange
                                        : FaultCause::kRemoteRange);
        }
    }
    inbound_.kind = operation.kind;
    inbound_.received += packet.payload.length;
    const bool invalidates = operation.trailer == Trailer::kInvalidate;
    return !invalidates || effects_.invalidate(packet.srq, packet.immediate) ==
                               InvalidateVerdict::kInvalidated
               ? Verdict::kPassed
               : fail(packet, FaultCause::kRemoteInvalidateRefused);
}

Responder::Verdict Responder::execute_atomic_write(const Packet& packet) {
    switch (effects_.place(packet.srq, packet.payload, std::span(&target_.span, 1), 0)) {
        case CopyOutcome::kCopied:
            break;
        case CopyOutcome::kSourceFault:
            effects_.source_fault(packet);
            return Verdict::kAnswered;
        case CopyOutcome::kDestinationFault:
            return fail(packet, FaultCause::kRemoteRange);
    }
    remember(packet);
    return Verdict::kPassed;
}

Responder::Verdict Responder::execute_atomic(const Packet& packet) {
    std::uint64_t original = 0;
    if (!effects_.load(packet.srq, target_.span, original)) {
        return fail(packet, FaultCause::kRemoteRange);
    }
    const bool swaps = packet.operation().kind == MessageKind::kCompareSwap;
    const bool stores = !swaps || original == packet.compare;
    const std::uint64_t value = swaps ? packet.swap_add : original + packet.swap_add;
    if (stores && !effects_.store(packet.srq, target_.span, value)) {
        return fail(packet, FaultCause::kRemoteRange);
    }
    remember(packet, original);
    return Verdict::kPassed;
}

void Responder::remember(const Packet& packet, std::uint64_t original) {
    const std::uint64_t mtu = attributes_.path_mtu;
    const std::uint64_t packets = (response_length(packet) + mtu - 1) / mtu;
    const Executed executed{packet.psn, std::max(1U, static_cast<std::uint32_t>(packets)),
                            packet.operation().kind, original};
    if (executed_.size() >= std::max<std::size_t>(1, attributes_.max_dest_rd_atomic)) {
        executed_.erase(executed_.begin());
    }
    executed_.push_back(executed);
}

Responder::Verdict Responder::acknowledge(const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    const bool initiated = initiates(operation.kind);
    expected_psn_ = expected_psn_ + (initiated ? executed_.back().packets : packet.packets);
    move(ResponderEvent::kExecuted);
    if (attributes_.state == QpState::kRtr && !established_) {
        established_ = true;
        effects_.raise(AsyncEvent::kCommEst);
    }
    if (operation.ends_message) {
        msn_ = (msn_ + 1) % Psn::kModulus;
        effects_.delivered(operation.kind, initiated ? packet.dma_length : inbound_.received);
        if (receive_.taken && completes_receive(operation)) {
            complete_receive(packet);
        }
        inbound_ = {};
    } else if (receive_.by_tag && operation.starts_message && receive_.taken) [[unlikely]] {
        announce_match(completion_of(packet));
    }
    if (state_ == ResponderState::kStopped) {
        return Verdict::kAnswered;  // executed and completed, never acknowledged: see README.md
    }
    if (initiated) {
        queue(answer_of(packet, executed_.back()));
        send_answers();
    } else if (packet.ack_request) {
        acknowledge_up_to(packet.psn + (packet.packets - 1U));
    }
    return Verdict::kAnswered;
}

void Responder::complete_receive(const Packet& packet) {
    if (receive_.by_tag) [[unlikely]] {
        complete_tagged(packet);
        return;
    }
    receive_.taken = false;
    complete(completion_of(packet));
}

ReceiveCompletion Responder::completion_of(const Packet& packet) const {
    const bool write = packet.operation().kind == MessageKind::kWrite;
    ReceiveCompletion completion;
    completion.wr_id = receive_.wqe.wr_id;
    completion.opcode = write ? WcOpcode::kRecvRdmaWithImm : WcOpcode::kRecv;
    completion.byte_length = static_cast<std::uint32_t>(inbound_.received);
    completion.has_immediate = packet.operation().trailer == Trailer::kImmediate;
    completion.invalidated = packet.operation().trailer == Trailer::kInvalidate;
    completion.immediate =
        completion.has_immediate || completion.invalidated ? packet.immediate : 0;
    completion.solicited = packet.solicited;
    completion.freed_to = receive_.index + 1;
    completion.srq = receive_.srq;
    return completion;
}

}  // namespace simverbs
