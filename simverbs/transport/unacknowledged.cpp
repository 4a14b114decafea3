// The responder without acknowledgments: UC, where a packet that does not fit ends its message and
// nobody is told (IBA 9.8.2.2), and datagrams (IBA 9.8.3).
#include "simverbs/transport/responder.hpp"

namespace simverbs {
namespace {

constexpr std::uint64_t kGrhSpace = 40;  // before the payload of a receive (IBA 11.4.1.2)

// The row of completion_faults that stands for a check's refusal where nothing is acknowledged.
FaultCause unacknowledged_cause(FaultCause cause) {
    switch (cause) {
        case FaultCause::kReceiveKey:
        case FaultCause::kReceiveRange:
        case FaultCause::kReceiveRight:
            return FaultCause::kUnackedReceiveBad;
        case FaultCause::kMalformedReceive:
            return FaultCause::kUnackedMalformedReceive;
        case FaultCause::kReceiveTooSmall:
            return FaultCause::kUnackedReceiveTooSmall;
        case FaultCause::kRemoteInvalidateRefused:
            return FaultCause::kUnackedInvalidateRefused;
        case FaultCause::kQpLacksRight:
        case FaultCause::kRemoteKey:
        case FaultCause::kRemoteRange:
        case FaultCause::kRemoteRight:
        case FaultCause::kRemoteOtherPd:
            return FaultCause::kUnackedWriteRefused;
        case FaultCause::kPayloadNotMtu:
        case FaultCause::kOpcodeOutOfOrder:
        case FaultCause::kOpcodeReserved:
            return FaultCause::kUnackedMessageCut;
        default:
            return cause;
    }
}

}  // namespace

// A packet is missing, or one begins a message inside another: what was begun is dropped, its
// receive waits for the next message, and only a packet that begins one is looked at.
Responder::Verdict Responder::resynchronise(const Packet& packet) {
    if (inbound_.kind != MessageKind::kNone) {
        effects_.discarded(packet, FaultCause::kUnackedMessageCut);
        inbound_ = {};
    } else if (!packet.operation().starts_message) {
        effects_.discarded(packet, PacketFate::kCutMessage);
    }
    expected_psn_ = packet.psn;
    if (packet.operation().starts_message) {
        return Verdict::kPassed;
    }
    expected_psn_ = packet.psn + 1;
    return Verdict::kAnswered;
}

Responder::Verdict Responder::drop(const Packet& packet, FaultCause cause) {
    cause = unacknowledged_cause(cause);
    expected_psn_ = packet.psn + 1;
    inbound_ = {};
    effects_.discarded(packet, cause);
    const FaultSide& side = consequences(personality_, cause).responder;
    if (receive_.taken && side.status) {
        end_receive(*side.status, packet.operation().kind, cause);
    }
    if (side.event) {
        effects_.raise(*side.event);
    }
    if (side.trigger) {
        failure_ = EngineFailure{*side.trigger, cause};
    }
    return Verdict::kAnswered;
}

void Responder::receive_datagram(const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    const bool is_datagram = operation.known && operation.kind == MessageKind::kSend &&
                             operation.starts_message && operation.ends_message &&
                             operation.trailer != Trailer::kInvalidate;
    if (!is_datagram) {
        drop(packet, FaultCause::kUnackedMessageCut);
        return;
    }
    if (packet.qkey != attributes_.qkey) {
        drop(packet, FaultCause::kWrongQkey);
        return;
    }
    if (!receive_.taken && !take_receive(packet)) {
        drop(packet, FaultCause::kUnackedNoReceive);
        return;
    }
    const std::uint64_t length = kGrhSpace + packet.payload.length;
    FaultCause cause = FaultCause::kSuccess;
    if (!open_datagram(packet, length, cause)) {
        drop(packet, cause);
        return;
    }
    bool has_grh = false;
    if (effects_.place_grh(spans_, has_grh) != CopyOutcome::kCopied ||
        effects_.place(packet.srq, packet.payload, spans_, kGrhSpace) != CopyOutcome::kCopied) {
        drop(packet, FaultCause::kReceiveRange);
        return;
    }
    effects_.delivered(MessageKind::kSend, packet.payload.length);
    ReceiveCompletion completion;
    completion.wr_id = receive_.wqe.wr_id;
    completion.byte_length = static_cast<std::uint32_t>(length);
    completion.has_immediate = operation.trailer == Trailer::kImmediate;
    completion.immediate = completion.has_immediate ? packet.immediate : 0;
    completion.solicited = packet.solicited;
    completion.has_grh = has_grh;
    completion.source_qpn = packet.source_qpn;
    completion.freed_to = receive_.index + 1;
    receive_.taken = false;
    complete(completion);
}

// Opens the first `length` bytes of the receive; otherwise says why not.
bool Responder::open_datagram(const Packet& packet, std::uint64_t length, FaultCause& cause) {
    if (receive_.wqe.segment_count > segments_.size()) {
        cause = FaultCause::kMalformedReceive;
        return false;
    }
    if (length > receive_.room) {
        cause =
            receives_.shared ? FaultCause::kDatagramAboveSrqReceive : FaultCause::kReceiveTooSmall;
        return false;
    }
    return open_receive(packet, 0, length, cause);
}

}  // namespace simverbs
