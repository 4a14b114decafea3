#include "simverbs/transport/frame_receiver.hpp"

#include <algorithm>
#include <array>

#include "simverbs/wire/ethernet_headers.hpp"

namespace simverbs {

FrameReceiver::FrameReceiver(const Personality& personality, std::uint32_t segments,
                             FrameOffloads offloads, ReceiveEffects& effects)
    : personality_(personality),
      offloads_(offloads),
      effects_(effects),
      segments_(segments),
      spans_(std::max<std::size_t>(1, segments)) {}

void FrameReceiver::flush() {
    if (has_receive_) {
        ReceiveCompletion completion;
        completion.status = WcStatus::kWrFlushErr;
        completion.cause = FaultCause::kFlushed;
        complete_receive(completion);
    }
}

bool FrameReceiver::take_receive() {
    has_receive_ =
        has_receive_ || effects_.take_receive(kNoSrq, receive_, segments_, receive_index_);
    return has_receive_;
}

// A frame that finds no receive is lost, and one for which the receive is too small: that receive
// is for the next.
EngineResult FrameReceiver::receive(const ReceivedFrame& frame) {
    if (!take_receive()) {
        return {};
    }
    if (receive_.segment_count > segments_.size()) {
        return refuse_receive(FaultCause::kUnackedMalformedReceive);
    }
    const std::span<const Segment> segments(segments_.data(), receive_.segment_count);
    std::uint64_t room = 0;
    for (const Segment& segment : segments) {
        room += segment.length;
    }
    const Placement placement = placement_of(frame);
    if (room < placement.length) {
        return refuse_receive(FaultCause::kUnackedReceiveTooSmall);
    }
    if (!place(frame, placement, segments)) {
        return refuse_receive(FaultCause::kUnackedReceiveBad);
    }
    ReceiveCompletion completion;
    completion.byte_length = placement.length;
    completion.ip_checksum_holds = frame.checksums_hold;
    completion.cvlan = placement.cvlan.value_or(0);
    completion.flow_tag = frame.flow_tag;
    effects_.delivered(MessageKind::kSend, placement.length);
    complete_receive(completion);
    return {};
}

FrameReceiver::Placement FrameReceiver::placement_of(const ReceivedFrame& frame) const {
    Placement placement{frame.payload.length, std::nullopt};
    if (offloads_.contains(FrameOffload::kCvlanStripping)) {
        placement.cvlan = cvlan_of(frame.bytes);
        placement.length -= placement.cvlan ? kCvlanBytes : 0;
    }
    if (offloads_.contains(FrameOffload::kScatterFcs)) {
        placement.length += kFcsBytes;
    }
    return placement;
}

// Opens the segments that the frame reaches, and copies it there: without the tag that is taken
// out, and with the check sequence of the frame as it was on the wire.
bool FrameReceiver::place(const ReceivedFrame& frame, const Placement& placement,
                          std::span<const Segment> segments) {
    std::size_t count = 0;
    std::uint64_t opened = 0;
    for (const Segment& segment : segments) {
        if (opened >= placement.length) {
            break;
        }
        const Grant grant = effects_.open_receive(kNoSrq, segment);
        if (grant.verdict != KeyVerdict::kGranted) {
            return false;
        }
        spans_[count++] = grant.span;
        opened += segment.length;
    }
    const std::span<const MemorySpan> spans = std::span(spans_).first(count);
    std::uint64_t at = 0;
    const auto put = [this, &spans, &at](const Payload& part) {
        const bool copied = effects_.place(kNoSrq, part, spans, at) == CopyOutcome::kCopied;
        at += part.length;
        return copied;
    };
    Payload rest = frame.payload;
    if (placement.cvlan) {
        Payload addresses = frame.payload;
        addresses.length = kCvlanOffset;
        rest.offset += kCvlanOffset + kCvlanBytes;
        rest.length -= kCvlanOffset + kCvlanBytes;
        if (!put(addresses)) {
            return false;
        }
    }
    if (!put(rest)) {
        return false;
    }
    if (!offloads_.contains(FrameOffload::kScatterFcs)) {
        return true;
    }
    const std::array<std::byte, kFcsBytes> fcs = frame_check_sequence(frame.bytes);
    const MemorySpan span{reinterpret_cast<std::uint64_t>(fcs.data()), kFcsBytes};
    return put({frame.payload.space, &span, 0, kFcsBytes, 1});
}

EngineResult FrameReceiver::refuse_receive(FaultCause cause) {
    const FaultSide side = consequences(personality_, cause).responder;
    if (side.status) {
        ReceiveCompletion completion;
        completion.status = *side.status;
        completion.cause = cause;
        complete_receive(completion);
    }
    return side.trigger ? EngineResult({*side.trigger, cause}) : EngineResult();
}

void FrameReceiver::complete_receive(ReceiveCompletion completion) {
    has_receive_ = false;
    completion.wr_id = receive_.wr_id;
    completion.freed_to = receive_index_ + 1;
    effects_.complete(completion);
}

}  // namespace simverbs
