#include "simverbs/transport/frame_receiver.hpp"

#include <algorithm>

namespace simverbs {

FrameReceiver::FrameReceiver(const Personality& personality, std::uint32_t segments,
                             ReceiveEffects& effects)
    : personality_(personality),
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
    has_receive_ = has_receive_ || effects_.take_receive(receive_, segments_, receive_index_);
    return has_receive_;
}

// A frame that finds no receive is lost, and one for which the receive is too small: that receive
// is for the next.
void FrameReceiver::receive(const Payload& frame, bool checksums_hold) {
    if (!take_receive()) {
        return;
    }
    if (receive_.segment_count > segments_.size()) {
        refuse_receive(FaultCause::kUnackedMalformedReceive);
        return;
    }
    const std::span<const Segment> segments(segments_.data(), receive_.segment_count);
    std::uint64_t room = 0;
    for (const Segment& segment : segments) {
        room += segment.length;
    }
    if (room < frame.length) {
        refuse_receive(FaultCause::kUnackedReceiveTooSmall);
        return;
    }
    if (!place(frame, segments)) {
        refuse_receive(FaultCause::kUnackedReceiveBad);
        return;
    }
    ReceiveCompletion completion;
    completion.byte_length = frame.length;
    completion.ip_checksum_holds = checksums_hold;
    effects_.delivered(MessageKind::kSend, frame.length);
    complete_receive(completion);
}

// Opens the segments that the frame reaches, and copies it there.
bool FrameReceiver::place(const Payload& frame, std::span<const Segment> segments) {
    std::size_t count = 0;
    std::uint64_t opened = 0;
    for (const Segment& segment : segments) {
        if (opened >= frame.length) {
            break;
        }
        const Grant grant = effects_.open_receive(segment);
        if (grant.verdict != KeyVerdict::kGranted) {
            return false;
        }
        spans_[count++] = grant.span;
        opened += segment.length;
    }
    return effects_.place(frame, std::span(spans_).first(count), 0) == CopyOutcome::kCopied;
}

void FrameReceiver::refuse_receive(FaultCause cause) {
    const FaultSide side = consequences(personality_, cause).responder;
    if (side.status) {
        ReceiveCompletion completion;
        completion.status = *side.status;
        completion.cause = cause;
        complete_receive(completion);
    }
    if (side.trigger) {
        effects_.fail(*side.trigger, cause);
    }
}

void FrameReceiver::complete_receive(ReceiveCompletion completion) {
    has_receive_ = false;
    completion.wr_id = receive_.wr_id;
    completion.freed_to = receive_index_ + 1;
    effects_.complete(completion);
}

}  // namespace simverbs
