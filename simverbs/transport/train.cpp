// Trains where they arrive: packets that pass every check and change nothing that anybody could see
// before the last of them.
#include <algorithm>

#include "simverbs/transport/requester.hpp"
#include "simverbs/transport/responder.hpp"

namespace simverbs {
namespace {

// The bytes that a packet places may then be those that the next one carries.
bool overlaps(const Payload& from, std::span<const MemorySpan> to) {
    return std::any_of(to.begin(), to.end(), [&from](const MemorySpan& target) {
        return std::any_of(from.spans, from.spans + from.span_count,
                           [&target](const MemorySpan& source) {
                               return source.kind == target.kind &&
                                      source.address < target.address + target.length &&
                                      target.address < source.address + source.length;
                           });
    });
}

}  // namespace

// Says what the checks would say of each of its packets. Of those that they look at, a train has
// none that begins a message or brings more than a payload.
bool Responder::continues_message(const Packet& train) const {
    const WireOpcode& operation = train.operation();
    const bool is_write = operation.kind == MessageKind::kWrite;
    if (!service_.acked || service_.srq_from_packet || state_ == ResponderState::kRefusing ||
        operation.transport != service_.wire_transport || operation.starts_message ||
        operation.kind != inbound_.kind || operation.trailer != Trailer::kNone ||
        distance(expected_psn_, train.psn) != 0 ||
        (is_write && !attributes_.access.contains(Access::kRemoteWrite))) {
        return false;
    }
    const std::uint64_t before_last = std::uint64_t{attributes_.path_mtu} * (train.packets - 1U);
    const std::uint64_t length = train.payload.length;
    const bool is_cut_by_mtu =
        length > before_last &&
        (operation.ends_message ? length <= before_last + attributes_.path_mtu
                                : length == before_last + attributes_.path_mtu);
    const std::uint64_t reached = inbound_.received + length;
    if (is_write) {
        return is_cut_by_mtu &&
               (operation.ends_message ? reached == inbound_.length : reached <= inbound_.length);
    }
    return is_cut_by_mtu && reached <= receive_.room + receive_.unplaced;
}

bool Responder::open_target(const Packet& train) {
    if (train.operation().kind == MessageKind::kSend) {
        FaultCause cause = FaultCause::kSuccess;
        return open_receive(train, inbound_.received - receive_.unplaced, train.payload.length,
                            cause);
    }
    const Grant grant =
        effects_.open_remote(train.srq, inbound_.rkey, inbound_.address + inbound_.received,
                             train.payload.length, Access::kRemoteWrite);
    spans_.assign(1, grant.span);
    return grant.verdict == KeyVerdict::kGranted;
}

bool Responder::would_take(const Packet& train, std::span<const MemorySpan>& to) {
    if (!continues_message(train) || !open_target(train)) {
        return false;
    }
    to = spans_;
    const AddressSpace* const space = train.payload.space;
    const bool one_memory =
        space != nullptr &&
        (space == memory_.application || (space->is_own() && memory_.application->is_own()));
    return !(one_memory && overlaps(train.payload, spans_));
}

bool Responder::take_ahead(const Packet& train) {
    std::span<const MemorySpan> to;
    return would_take(train, to) &&
           effects_.place(train.srq, train.payload, to, 0) == CopyOutcome::kCopied;
}

void Responder::receive_train(const Packet& train) {
    inbound_.received += train.payload.length;
    acknowledge(train);
}

// The first response has come before, so that the landing place is known. Where very many PSNs are
// on the wire, each response may let another request begin.
bool Requester::would_take(const Packet& train, std::span<const MemorySpan>& to) {
    if (state_ != RequesterState::kSending || unacknowledged_ != window_.head() ||
        unacknowledged_ == window_.fetched() ||
        train.operation().kind != MessageKind::kReadResponse ||
        distance(oldest_psn_, sent_end_) > static_cast<std::int32_t>(Psn::kModulus / 4)) {
        return false;
    }
    const SendRequest& request = window_.at(unacknowledged_);
    to = window_.spans(unacknowledged_).subspan(0, request.span_count);
    return request.started && request.opcode->message == MessageKind::kRead &&
           request.responses != 0 && distance(request.next_response_psn(), train.psn) == 0 &&
           request.responses + train.packets < request.packets &&
           train.payload.length == std::uint64_t{attributes_.path_mtu} * train.packets &&
           effects_.key_generation() == request.key_generation;
}

bool Requester::take_ahead(const Packet& train) {
    std::span<const MemorySpan> to;
    return would_take(train, to) &&
           effects_.place(kNoSrq, train.payload, to,
                          std::uint64_t{window_.at(unacknowledged_).responses} *
                              attributes_.path_mtu) == CopyOutcome::kCopied;
}

void Requester::take_response_train(const Packet& train) {
    SendRequest& request = window_.at(unacknowledged_);
    request.responses += train.packets;
    progress(request.next_response_psn());
}

}  // namespace simverbs
