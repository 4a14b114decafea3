// The checks of a send request before its first packet leaves, and where its bytes are.
#include <algorithm>
#include <numeric>

#include "simverbs/transport/requester.hpp"

namespace simverbs {
namespace {

FaultCause cause_of(KeyVerdict verdict, bool landing) {
    switch (verdict) {
        case KeyVerdict::kRightMissing:
            return FaultCause::kLandingRight;
        case KeyVerdict::kOutOfRange:
            return landing ? FaultCause::kLandingRange : FaultCause::kGatherRange;
        case KeyVerdict::kGranted:
        case KeyVerdict::kUnknownKey:
        case KeyVerdict::kOtherProtectionDomain:
            break;
    }
    return landing ? FaultCause::kLandingKey : FaultCause::kGatherKey;
}

bool is_flush(const SendWqe& wqe) {
    const FlushRequest flush = flush_of(wqe);
    return wqe.segment_count == 0 && is_flush(PlacementTypes::from_bits(flush.placement),
                                              static_cast<FlushReach>(flush.reach));
}

}  // namespace

void Requester::prepare(SendRequest& request, std::uint32_t index) {
    request.opcode = find_wr_opcode(request.wqe.opcode);
    check(request, index);
    request.first_psn = next_psn_;
    const std::uint64_t mtu = attributes_.path_mtu;
    request.packets = request.failure == WcStatus::kSuccess && !request.is_local()
                          ? static_cast<std::uint32_t>(
                                std::max<std::uint64_t>(1, (request.length + mtu - 1) / mtu))
                          : 0;
    next_psn_ = next_psn_ + request.packets;
}

// It fails in its turn, as the row of its cause says.
void Requester::fail_request(SendRequest& request, FaultCause cause) const {
    request.failure =
        consequences(personality_, cause).requester.status.value_or(WcStatus::kGeneralErr);
    request.cause = cause;
}

void Requester::check(SendRequest& request, std::uint32_t index) {
    const auto refuse = [this, &request](FaultCause cause) { fail_request(request, cause); };
    if (request.failure != WcStatus::kSuccess) {
        return;
    }
    const SendWqe& wqe = request.wqe;
    if (request.opcode == nullptr ||
        !carries_out(personality_, *request.opcode, attributes_.service)) {
        refuse(FaultCause::kOpcodeNotForService);
        return;
    }
    if (has_flag(wqe, SendFlag::kInline) && !request.opcode->may_be_inline &&
        personality_.inline_on_read == BadRequest::kComplete) {
        refuse(FaultCause::kLandingKey);
        return;
    }
    if (request.is_local()) {
        return;  // what it names is looked at when its turn has come
    }
    // Queues without room for segments have a span for inline data all the same.
    const bool is_inline = has_flag(wqe, SendFlag::kInline) && request.opcode->may_be_inline;
    if (wqe.segment_count > window_.spans(index).size() ||
        (!is_inline && wqe.segment_count * sizeof(Segment) > window_.tail(index).size())) {
        refuse(FaultCause::kMalformedSend);
        return;
    }
    if (request.opcode->message == MessageKind::kFlush && !is_flush(wqe)) {
        refuse(FaultCause::kMalformedSend);
        return;
    }
    if (request.opcode->occupies_initiator && attributes_.max_rd_atomic == 0 &&
        personality_.initiator_depth_zero_completes) {
        refuse(FaultCause::kInitiatorDepthZero);
        return;
    }
    const std::uint64_t length = length_of(request, index);
    if (length > personality_.limits.port.max_message_bytes && personality_.checks_message_length) {
        refuse(FaultCause::kMessageTooLong);
        return;
    }
    if (!service_.segments && length > attributes_.path_mtu && personality_.checks_message_length) {
        refuse(FaultCause::kDatagramAboveMtu);
        return;
    }
    if (service_.uses_ah && !check_destination(request)) {
        return;
    }
    request.length = length;
    if (!request.opcode->returns_data && !open_spans(request, index)) {
        return;
    }
    const bool takes_more = personality_.atomic_not_eight_bytes != BadRequest::kComplete;
    if (request.opcode->atomic &&
        (takes_more ? request.length < kAtomicBytes : request.length != kAtomicBytes)) {
        refuse(FaultCause::kAtomicNotEightBytes);
    }
}

bool Requester::check_destination(SendRequest& request) const {
    const AddressVerdict verdict = effects_.check_address(request.wqe.address_handle);
    if (verdict == AddressVerdict::kUsable || (verdict == AddressVerdict::kOtherProtectionDomain &&
                                               !personality_.checks_pd_of_address_handle)) {
        return true;
    }
    fail_request(request, verdict == AddressVerdict::kOtherProtectionDomain
                              ? FaultCause::kAddressOfOtherPd
                              : FaultCause::kMalformedSend);
    return false;
}

// Returns the length of all segments together, whether they may be accessed or not.
std::uint64_t Requester::length_of(const SendRequest& request, std::uint32_t index) {
    if (has_flag(request.wqe, SendFlag::kInline) && request.opcode->may_be_inline) {
        return request.wqe.inline_length;
    }
    const auto* segments = reinterpret_cast<const Segment*>(window_.tail(index).data());
    return std::accumulate(
        segments, segments + request.wqe.segment_count, std::uint64_t{0},
        [](std::uint64_t sum, const Segment& segment) { return sum + segment.length; });
}

// Checks the local keys, and keeps where the bytes are; false when the request has failed.
bool Requester::open_spans(SendRequest& request, std::uint32_t index) {
    const std::span<MemorySpan> spans = window_.spans(index);
    request.length = 0;
    request.span_count = 0;
    request.key_generation = effects_.key_generation();
    if (has_flag(request.wqe, SendFlag::kInline) && request.opcode->may_be_inline) {
        const std::span<std::byte> bytes = window_.tail(index);
        if (request.wqe.inline_length > bytes.size()) {
            fail_request(request, FaultCause::kMalformedSend);
            return false;
        }
        spans[0] = {reinterpret_cast<std::uint64_t>(bytes.data()), request.wqe.inline_length};
        request.span_count = 1;
        request.length = request.wqe.inline_length;
        return true;
    }
    const auto* segments = reinterpret_cast<const Segment*>(window_.tail(index).data());
    const AccessRights needed =
        request.opcode->returns_data ? AccessRights(Access::kLocalWrite) : AccessRights();
    for (std::uint16_t i = 0; i < request.wqe.segment_count; ++i) {
        if (segments[i].length == 0) {
            continue;  // no bytes, no key check (IBA 10.7.2.2)
        }
        const Grant grant = request.of_device ? effects_.open_receive(kNoSrq, segments[i])
                                              : effects_.open_local(segments[i], needed);
        if (grant.verdict != KeyVerdict::kGranted) {
            fail_request(request, cause_of(grant.verdict, request.opcode->returns_data));
            return false;
        }
        spans[request.span_count++] = grant.span;
        request.length += segments[i].length;
    }
    return true;
}

}  // namespace simverbs
