// The answers of the responder, in the order of the requests.
#include <algorithm>

#include "fabric/core/assert.hpp"

#include "simverbs/transport/responder.hpp"

namespace simverbs {
namespace {

// READ response packets given to the transmitter at once; more follow when it has drained, so that
// a long READ neither floods the port nor holds more snapshots than these.
constexpr std::uint32_t kBurstPackets = 16;
static_assert(kBurstPackets <= kLongestSnapshotTrain);
// Acknowledgments wait behind READ responses and atomics, one at most between two of them.
constexpr std::size_t kMaxAnswers = 1024;

}  // namespace

void Responder::acknowledge_up_to(Psn psn) {
    Answer answer{.psn = psn, .syndrome = AethSyndrome::ack(kCreditsUnlimited), .msn = msn_};
    if (answers_.empty()) {
        send_single(answer);
        return;
    }
    Answer& last = answers_.back();
    if (last.kind == MessageKind::kAck && last.syndrome.kind == AethKind::kAck) {
        last = answer;
    } else {
        queue(answer);
    }
}

void Responder::send_nak(Psn psn, AethSyndrome syndrome, FaultCause cause) {
    const Answer answer{.psn = psn, .syndrome = syndrome, .cause = cause, .msn = msn_};
    if (answers_.empty()) {
        send_single(answer);
    } else {
        queue(answer);
    }
}

void Responder::queue(const Answer& answer) {
    SIMVERBS_ASSERT(answers_.size() < kMaxAnswers, "QP {:#x} has {} answers waiting",
                    attributes_.qpn, answers_.size());
    answers_.push_back(answer);
}

Responder::Answer Responder::answer_of(const Packet& packet, const Executed& request) const {
    return {.kind = response_to(packet.operation().kind),
            .psn = packet.psn,
            .msn = msn_,
            .rkey = packet.rkey,
            .srq = packet.srq,
            .address = packet.remote_address,
            .length = response_length(packet),
            .original = request.original};
}

// A request that is asked again: its answer comes in the place of what is left of the first one.
// Answers to later requests stay behind it: a requester that went back asks for them again, and the
// fabric that doubled a packet does not.
void Responder::queue_again(Answer answer, const Executed& request) {
    answer.again = true;
    std::erase_if(answers_, [&](const Answer& queued) {
        const std::int32_t into = distance(request.psn, queued.psn);
        const bool same = queued.kind != MessageKind::kAck && into >= 0 &&
                          into < static_cast<std::int32_t>(request.packets);
        answer.again = answer.again && (!same || queued.again);
        return same;
    });
    const auto later = std::find_if(answers_.begin(), answers_.end(), [&](const Answer& queued) {
        return distance(request.psn, queued.psn) > 0;
    });
    answers_.insert(later, answer);
}

// A duplicate's answer takes no room: its requester may have had the first one in the meantime.
std::uint32_t Responder::pending_initiations() const {
    return static_cast<std::uint32_t>(std::count_if(
        answers_.begin(), answers_.end(),
        [](const Answer& answer) { return answer.kind != MessageKind::kAck && !answer.again; }));
}

// The queue pair goes down with a refusal, so the READs before it are answered first.
Responder::Verdict Responder::fail(const Packet& packet, FaultCause cause) {
    if (!service_.acked) {
        return drop(packet, cause);
    }
    Refusal refusal{packet.psn, packet.operation().kind, cause};
    if (refusal.kind == MessageKind::kWrite && completes_receive(packet.operation()) &&
        consequences(personality_, cause).wire == WireAnswer::kNak2 &&
        (receive_.taken || take_receive(packet))) {  // where keys are looked at before resources
        refusal.cause = FaultCause::kImmediateWriteRefused;
    }
    if (!packet.operation().response()) {  // else one that it could not send
        effects_.discarded(packet, PacketFate::kRefused);
    }
    if (answers_.empty()) {
        refuse(refusal);
    } else {
        refusal_ = refusal;
        move(ResponderEvent::kRefuse);
    }
    return Verdict::kAnswered;
}

// Sends the NAK, completes the receive that is concerned, and takes the queue pair down: in this
// order, so the requester always hears why.
void Responder::refuse(const Refusal& refusal) {
    const CompletionFault fault = consequences(personality_, refusal.cause);
    move(ResponderEvent::kStop);
    if (const auto code = nak_code(fault.wire)) {
        if (code == NakCode::kRemoteAccessError) {
            effects_.count(HwCounter::kRespRemoteAccessErrors);
        }
        send_nak(refusal.psn, AethSyndrome::nak(*code), refusal.cause);
    } else if (fault.wire == WireAnswer::kAck) {
        acknowledge_up_to(refusal.psn);
    }
    if (receive_.taken && fault.responder.status) {
        end_receive(*fault.responder.status, refusal.kind, refusal.cause);
    }
    if (fault.responder.event) {
        effects_.raise(*fault.responder.event);
    }
    failure_ = EngineFailure{QpTrigger::kQpError, refusal.cause};
}

// A request seen before: acknowledged again, or a READ or atomic answered again
// (IBA 9.7.5.1.2 to 9.7.5.1.5).
void Responder::answer_duplicate(const Packet& packet) {
    const MessageKind kind = packet.operation().kind;
    if (kind == MessageKind::kSend || kind == MessageKind::kWrite) {
        if (packet.ack_request) {
            acknowledge_up_to(expected_psn_ + (Psn::kModulus - 1));
        }
        return;
    }
    for (const Executed& executed : executed_) {
        const std::int32_t into = distance(executed.psn, packet.psn);
        const bool covers = into >= 0 && into < static_cast<std::int32_t>(executed.packets);
        if (!covers || executed.kind != kind) {
            continue;
        }
        queue_again(answer_of(packet, executed), executed);
        send_answers();
        return;
    }
    effects_.discarded(packet, PacketFate::kUnanswerable);
}

std::uint32_t Responder::response_length(const Packet& packet) {
    return packet.operation().kind == MessageKind::kRead ? packet.dma_length : 0;
}

EngineResult Responder::transmitter_free() {
    send_answers();
    return take_failure();
}

void Responder::send_answers() {
    while (!answers_.empty()) {
        Answer& answer = answers_.front();
        if (answer.kind == MessageKind::kReadResponse) {
            if (!send_read_response(answer)) {
                return;
            }
        } else {
            send_single(answer);
        }
        answers_.erase(answers_.begin());
    }
    if (state_ == ResponderState::kRefusing) {
        refuse(Refusal(refusal_));
    }
}

// False when it is not finished: the transmitter has enough for now, or the memory is gone.
bool Responder::send_read_response(Answer& answer) {
    const std::uint64_t mtu = attributes_.path_mtu;
    fabric::SimDuration gap{};  // what congestion leaves between two packets
    for (std::uint32_t burst = 0; burst < kBurstPackets; ++burst) {
        burst += send_response_train(answer, kBurstPackets - burst);
        if (burst >= kBurstPackets) {
            break;
        }
        const std::uint64_t left = answer.length - answer.sent;
        const bool first = answer.sent == 0;
        const bool last = left <= mtu;
        const auto length = static_cast<std::uint32_t>(std::min(left, mtu));
        Packet packet = response(MessageKind::kReadResponse,
                                 first ? (last ? PacketPosition::kOnly : PacketPosition::kFirst)
                                       : (last ? PacketPosition::kLast : PacketPosition::kMiddle),
                                 answer.psn + static_cast<std::uint32_t>(answer.sent / mtu));
        packet.syndrome = AethSyndrome::ack(kCreditsUnlimited);
        packet.msn = answer.msn;
        if (length > 0) {
            packet.payload.length = length;
            const KeyVerdict verdict = transmit_read_payload(answer, packet);
            if (verdict != KeyVerdict::kGranted) {
                answers_.clear();
                refusal_ = {};
                fail(packet, verdict == KeyVerdict::kUnknownKey ? FaultCause::kRemoteKey
                                                                : FaultCause::kRemoteRange);
                return false;
            }
        } else {
            effects_.transmit(packet);
        }
        responses_.add(packet.psn, 1);
        answer.sent += length;
        if (rate_ != nullptr && rate_->limited()) {
            gap += rate_->time_of(length);
            rate_->sent(length);
        }
        if (last) {
            return true;
        }
        if (gap > fabric::SimDuration::zero()) {
            break;
        }
    }
    effects_.arm_when_transmitter_free(EngineTimer::kPacing, gap);
    return false;
}

// Sends some of the middle packets of a READ response as a train, `most` at most. Returns how many:
// none where they may differ, or where one of them would be refused.
std::uint16_t Responder::send_response_train(Answer& answer, std::uint32_t most) {
    const std::uint64_t mtu = attributes_.path_mtu;
    const std::uint64_t middle = answer.sent == 0 ? 0 : (answer.length - answer.sent - 1) / mtu;
    const auto packets = static_cast<std::uint16_t>(
        std::min<std::uint64_t>({middle, most, effects_.longest_train()}));
    if (packets < 2 || (rate_ != nullptr && rate_->limited())) {
        return 0;
    }
    Packet train = response(MessageKind::kReadResponse, PacketPosition::kMiddle,
                            answer.psn + static_cast<std::uint32_t>(answer.sent / mtu));
    if (train.attempt > 1) {
        return 0;
    }
    train.packets = packets;
    train.train_mtu = static_cast<std::uint16_t>(mtu);
    train.syndrome = AethSyndrome::ack(kCreditsUnlimited);
    train.msn = answer.msn;
    train.payload.length = static_cast<std::uint32_t>(mtu * packets);
    if (transmit_read_payload(answer, train) != KeyVerdict::kGranted) {
        return 0;
    }
    responses_.add(train.psn, packets);
    answer.sent += train.payload.length;
    return packets;
}

// XRC: the key belongs to the queue that the request named, which may be gone.
KeyVerdict Responder::transmit_read_payload(const Answer& answer, Packet& packet) {
    Grant grant;
    if (!service_.srq_from_packet || effects_.is_served_by(answer.srq)) {
        grant = effects_.open_remote(answer.srq, answer.rkey, answer.address + answer.sent,
                                     packet.payload.length, Access::kRemoteRead);
    }
    if (grant.verdict == KeyVerdict::kGranted) {
        packet.srq = answer.srq;
        packet.payload = {memory_.application, &grant.span, 0, packet.payload.length, 1};
        if (effects_.transmit_snapshot(packet) != CopyOutcome::kCopied) {
            grant.verdict = KeyVerdict::kOutOfRange;
        }
    }
    return grant.verdict;
}

void Responder::send_single(const Answer& answer) {
    Packet packet = response(answer.kind, PacketPosition::kOnly, answer.psn);
    packet.syndrome = answer.syndrome;
    packet.msn = answer.msn;
    packet.compare = answer.original;
    packet.cause = answer.cause;
    effects_.transmit(packet);
    responses_.add(packet.psn, 1);
}

Packet Responder::response(MessageKind kind, PacketPosition position, Psn psn) const {
    Packet packet;
    packet.opcode = kEncodeOpcode(service_.wire_transport, kind, position, Trailer::kNone);
    packet.psn = psn;
    packet.attempt = responses_.next(psn);
    packet.dest_qpn = attributes_.dest_qpn;
    packet.source_qpn = attributes_.qpn;
    return packet;
}

}  // namespace simverbs
