// The checks of a request packet; what carries it out is in execution.cpp, what goes back in
// answers.cpp.
#include "simverbs/transport/responder.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"

#include "simverbs/model/opcodes.hpp"

namespace simverbs {
namespace {

FaultCause remote_cause(KeyVerdict verdict) {
    switch (verdict) {
        case KeyVerdict::kOtherProtectionDomain:
            return FaultCause::kRemoteOtherPd;
        case KeyVerdict::kRightMissing:
            return FaultCause::kRemoteRight;
        case KeyVerdict::kOutOfRange:
            return FaultCause::kRemoteRange;
        case KeyVerdict::kGranted:
        case KeyVerdict::kUnknownKey:
            break;
    }
    return FaultCause::kRemoteKey;
}

FaultCause receive_cause(KeyVerdict verdict) {
    switch (verdict) {
        case KeyVerdict::kRightMissing:
            return FaultCause::kReceiveRight;
        case KeyVerdict::kOutOfRange:
            return FaultCause::kReceiveRange;
        case KeyVerdict::kGranted:
        case KeyVerdict::kUnknownKey:
        case KeyVerdict::kOtherProtectionDomain:
            break;
    }
    return FaultCause::kReceiveKey;
}

// The right that queue pair and key must have given the peer for this request.
AccessRights right_for(const Packet& packet) {
    switch (packet.operation().kind) {
        case MessageKind::kWrite:
        case MessageKind::kAtomicWrite:
            return Access::kRemoteWrite;
        case MessageKind::kRead:
            return Access::kRemoteRead;
        case MessageKind::kCompareSwap:
        case MessageKind::kFetchAdd:
            return Access::kRemoteAtomic;
        case MessageKind::kFlush:
            return rights_for(packet.placement);
        default:
            return {};
    }
}

bool modelled(MessageKind kind) {
    return kind == MessageKind::kSend || kind == MessageKind::kWrite || initiates(kind);
}

}  // namespace

Responder::Responder(const QpAttributes& attributes, const Personality& personality,
                     ReceiveProperties receives, QpMemory memory, Effects& effects)
    : attributes_(attributes),
      personality_(personality),
      service_(properties(attributes.service)),
      receives_(receives),
      memory_(memory),
      effects_(effects),
      expected_psn_(attributes.rq_psn) {}

void Responder::start() {
    expected_psn_ = attributes_.rq_psn;
    msn_ = 0;
    move(ResponderEvent::kStart);
    established_ = false;
    inbound_ = {};
    receive_ = {};
    refusal_ = {};
    executed_.clear();
    answers_.clear();
    responses_.start(expected_psn_);
    segments_.resize(std::max(1U, receives_.max_segments));
    spans_.reserve(std::max(1U, receives_.max_segments));
}

bool Responder::move(ResponderEvent event) {
    const std::optional<ResponderState> to = next_state(state_, event);
    SIMVERBS_ASSERT(to, "QP {:#x}: a responder in {} has no move on '{}'", attributes_.qpn,
                    to_string(state_), to_string(event));
    return std::exchange(state_, *to) != *to;
}

void Responder::flush() {
    move(ResponderEvent::kStop);
    effects_.disarm(EngineTimer::kPacing);
    inbound_ = {};
    refusal_ = {};
    answers_.clear();
    const Receive receive = std::exchange(receive_, {});
    if (receive.taken) {
        receive_ = receive;
        end_receive(WcStatus::kWrFlushErr, MessageKind::kSend, FaultCause::kFlushed);
    }
}

void Responder::complete(const ReceiveCompletion& completion) {
    if (!effects_.complete(completion)) {
        move(ResponderEvent::kStop);
    }
}

// The receive in use completes in error.
void Responder::end_receive(WcStatus status, MessageKind kind, FaultCause cause) {
    ReceiveCompletion completion;
    completion.wr_id = receive_.wqe.wr_id;
    completion.status = status;
    completion.opcode = kind == MessageKind::kWrite ? WcOpcode::kRecvRdmaWithImm : WcOpcode::kRecv;
    completion.cause = cause;
    completion.freed_to = receive_.index + 1;
    completion.srq = receive_.srq;
    if (receive_.by_tag) [[unlikely]] {
        fail_tagged(completion);
        return;
    }
    receive_.taken = false;
    complete(completion);
}

EngineResult Responder::receive(const Packet& packet) {
    examine(packet);
    return take_failure();
}

void Responder::examine(const Packet& packet) {
    if (!service_.ordered) {
        receive_datagram(packet);
        return;
    }
    if (packet.is_placed) {
        receive_train(packet);
        return;
    }
    if (state_ == ResponderState::kRefusing && distance(expected_psn_, packet.psn) >= 0) {
        effects_.discarded(packet, PacketFate::kBehindRefused);
        return;
    }
    for (const ResponderCheck check : personality_.responder_order) {
        if (run(check, packet) == Verdict::kAnswered) {
            return;
        }
    }
}

bool Responder::completes_receive(const WireOpcode& operation) {
    return operation.kind == MessageKind::kSend || operation.trailer == Trailer::kImmediate;
}

Responder::Verdict Responder::run(ResponderCheck check, const Packet& packet) {
    switch (check) {
        case ResponderCheck::kDuplicate:
            return check_duplicate(packet);
        case ResponderCheck::kPsn:
            return check_psn(packet);
        case ResponderCheck::kSequence:
            return check_sequence(packet);
        case ResponderCheck::kOpcode:
            return check_opcode(packet);
        case ResponderCheck::kResources:
            return check_resources(packet);
        case ResponderCheck::kLength:
            return check_length(packet);
        case ResponderCheck::kKey:
            return check_key(packet);
        case ResponderCheck::kExecute:
            return execute(packet);
        case ResponderCheck::kAcknowledge:
            return acknowledge(packet);
    }
    return Verdict::kAnswered;
}

Responder::Verdict Responder::check_duplicate(const Packet& packet) {
    if (!service_.acked || distance(expected_psn_, packet.psn) >= 0) {
        return Verdict::kPassed;
    }
    effects_.count(HwCounter::kDuplicateRequest);
    answer_duplicate(packet);
    return Verdict::kAnswered;
}

Responder::Verdict Responder::check_psn(const Packet& packet) {
    const std::int32_t ahead = distance(expected_psn_, packet.psn);
    if (!service_.acked) {
        return ahead == 0 ? Verdict::kPassed : resynchronise(packet);
    }
    if (ahead <= 0) {
        return Verdict::kPassed;
    }
    effects_.count(HwCounter::kOutOfSequence);
    effects_.discarded(packet, state_ == ResponderState::kNotReady ? PacketFate::kBehindRnrNak
                                                                   : PacketFate::kOutOfSequence);
    if (move(ResponderEvent::kGap)) {
        send_nak(expected_psn_, AethSyndrome::nak(NakCode::kPsnSequenceError),
                 FaultCause::kSequenceRetriesUsedUp);
    }
    return Verdict::kAnswered;
}

Responder::Verdict Responder::check_sequence(const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    if (!operation.known) {
        return Verdict::kPassed;  // of no order: see check_opcode()
    }
    const bool fits = inbound_.kind == MessageKind::kNone
                          ? operation.starts_message
                          : !operation.starts_message && operation.kind == inbound_.kind;
    if (!fits && !service_.acked) {
        return resynchronise(packet);
    }
    return fits ? Verdict::kPassed : fail(packet, FaultCause::kOpcodeOutOfOrder);
}

Responder::Verdict Responder::check_opcode(const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    if (!operation.known || operation.transport != service_.wire_transport ||
        !modelled(operation.kind) || !offers(personality_, operation.kind)) {
        return fail(packet, FaultCause::kOpcodeReserved);
    }
    if (operation.kind == MessageKind::kFlush && !is_flush(packet.placement, packet.reach)) {
        return fail(packet, FaultCause::kOpcodeReserved);
    }
    if (service_.srq_from_packet && !names_usable_queue(packet)) {
        return fail(packet, FaultCause::kXrcSrqInvalid);
    }
    if (!attributes_.access.contains(right_for(packet))) {
        return fail(packet, FaultCause::kQpLacksRight);
    }
    if (is_atomic(operation.kind) && packet.remote_address % kAtomicBytes != 0) {
        return fail(packet, FaultCause::kAtomicMisaligned);
    }
    return Verdict::kPassed;
}

// XRC: a message that fills a receive goes on naming the queue that it came from.
bool Responder::names_usable_queue(const Packet& packet) const {
    const bool strays = receive_.taken && packet.srq != receive_.srq;
    return !strays && effects_.is_served_by(packet.srq);
}

Responder::Verdict Responder::check_resources(const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    if (initiates(operation.kind) && pending_initiations() >= attributes_.max_dest_rd_atomic) {
        return fail(packet, FaultCause::kTooManyReads);
    }
    const bool needs_receive =
        operation.kind == MessageKind::kSend
            ? operation.starts_message
            : operation.ends_message && operation.trailer == Trailer::kImmediate;
    if (!needs_receive || receive_.taken) {
        return Verdict::kPassed;
    }
    if (reads_tag(packet)) [[unlikely]] {
        return take_by_tag(packet);
    }
    return take_receive(packet) ? Verdict::kPassed : wait_for_receive(packet);
}

Responder::Verdict Responder::wait_for_receive(const Packet& packet) {
    if (!service_.acked) {
        return drop(packet, FaultCause::kUnackedNoReceive);
    }
    move(ResponderEvent::kNoReceive);
    effects_.count(HwCounter::kOutOfBuffer);
    effects_.discarded(packet, PacketFate::kNoReceive);
    send_nak(packet.psn, AethSyndrome::rnr_nak(attributes_.min_rnr_timer),
             FaultCause::kRnrRetriesUsedUp);
    return Verdict::kAnswered;
}

bool Responder::take_receive(const Packet& packet) {
    if (!effects_.take_receive(packet.srq, receive_.wqe, segments_, receive_.index)) {
        return false;
    }
    receive_.taken = true;
    receive_.srq = packet.srq;
    receive_.room = 0;
    receive_.unplaced = 0;
    receive_.by_tag = false;
    const std::size_t count = std::min<std::size_t>(receive_.wqe.segment_count, segments_.size());
    for (const Segment& segment : std::span(segments_).first(count)) {
        receive_.room += segment.length;
    }
    return true;
}

Responder::Verdict Responder::check_length(const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    const std::uint32_t length = packet.payload.length;
    if (operation.kind == MessageKind::kFlush) {
        return Verdict::kPassed;  // its length is of memory, not of a message
    }
    if (operation.kind == MessageKind::kAtomicWrite) {
        return length == kAtomicBytes && packet.dma_length == kAtomicBytes
                   ? Verdict::kPassed
                   : fail(packet, FaultCause::kPayloadNotMtu);
    }
    if (!operation.payload) {
        return packet.dma_length <= personality_.limits.port.max_message_bytes
                   ? Verdict::kPassed
                   : fail(packet, FaultCause::kPayloadNotMtu);
    }
    const bool whole_mtu =
        operation.ends_message ? length <= attributes_.path_mtu : length == attributes_.path_mtu;
    const bool empty_last = operation.ends_message && !operation.starts_message && length == 0;
    if (!whole_mtu || empty_last) {
        return fail(packet, FaultCause::kPayloadNotMtu);
    }
    if (operation.kind == MessageKind::kSend) {
        const bool malformed = receive_.wqe.segment_count > segments_.size();
        if (malformed) {
            return fail(packet, FaultCause::kMalformedReceive);
        }
        return inbound_.received + length <= receive_.room + receive_.unplaced
                   ? Verdict::kPassed
                   : fail(packet, FaultCause::kReceiveTooSmall);
    }
    const std::uint64_t announced = operation.starts_message ? packet.dma_length : inbound_.length;
    const std::uint64_t reached = inbound_.received + length;
    const bool agrees = operation.ends_message ? reached == announced : reached <= announced;
    return agrees ? Verdict::kPassed : fail(packet, FaultCause::kPayloadNotMtu);
}

Responder::Verdict Responder::check_key(const Packet& packet) {
    const MessageKind kind = packet.operation().kind;
    if (kind == MessageKind::kSend) {
        return Verdict::kPassed;  // its receive may not be taken yet: see execute()
    }
    if (kind == MessageKind::kWrite) {
        return open_write(packet);
    }
    if (kind == MessageKind::kFlush && packet.reach == FlushReach::kRegion) {
        const KeyVerdict verdict =
            effects_.check_remote(packet.srq, packet.rkey, right_for(packet));
        return verdict == KeyVerdict::kGranted ? Verdict::kPassed
                                               : fail(packet, remote_cause(verdict));
    }
    const std::uint64_t length = is_atomic(kind) ? kAtomicBytes : packet.dma_length;
    if (length == 0 && kind == MessageKind::kRead) {
        return Verdict::kPassed;  // no key is checked for no bytes (IBA 9.7.4.1.5)
    }
    target_ = effects_.open_remote(packet.srq, packet.rkey, packet.remote_address, length,
                                   right_for(packet));
    return target_.verdict == KeyVerdict::kGranted ? Verdict::kPassed
                                                   : fail(packet, remote_cause(target_.verdict));
}

// Opens `left` bytes of the receive's segments, `skip` bytes into them; otherwise says why not.
bool Responder::open_receive(const Packet& packet, std::uint64_t skip, std::uint64_t left,
                             FaultCause& cause) {
    spans_.clear();
    for (std::size_t i = 0; i < receive_.wqe.segment_count && left > 0; ++i) {
        const Segment& segment = segments_[i];
        if (skip >= segment.length) {
            skip -= segment.length;
            continue;
        }
        const auto part =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(left, segment.length - skip));
        const Grant grant =
            effects_.open_receive(packet.srq, {segment.address + skip, part, segment.lkey});
        if (grant.verdict != KeyVerdict::kGranted) {
            cause = receive_cause(grant.verdict);
            return false;
        }
        spans_.push_back(grant.span);
        left -= part;
        skip = 0;
    }
    return true;
}

Responder::Verdict Responder::open_write(const Packet& packet) {
    if (packet.operation().starts_message) {
        inbound_.address = packet.remote_address;
        inbound_.rkey = packet.rkey;
        inbound_.length = packet.dma_length;
    }
    spans_.clear();
    if (packet.payload.length == 0) {
        return Verdict::kPassed;
    }
    if (inbound_.length > packet.payload.length && packet.operation().starts_message) {
        // The whole range before the first byte lands, as the RETH names it (IBA 9.7.4.1.5).
        const Grant whole = effects_.open_remote(packet.srq, inbound_.rkey, inbound_.address,
                                                 inbound_.length, Access::kRemoteWrite);
        if (whole.verdict != KeyVerdict::kGranted) {
            return fail(packet, remote_cause(whole.verdict));
        }
    }
    const Grant grant =
        effects_.open_remote(packet.srq, inbound_.rkey, inbound_.address + inbound_.received,
                             packet.payload.length, Access::kRemoteWrite);
    if (grant.verdict != KeyVerdict::kGranted) {
        return fail(packet, remote_cause(grant.verdict));
    }
    spans_.push_back(grant.span);
    return Verdict::kPassed;
}

}  // namespace simverbs
