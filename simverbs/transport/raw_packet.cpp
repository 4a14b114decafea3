#include "simverbs/transport/raw_packet.hpp"

#include <algorithm>
#include <utility>

#include "simverbs/transport/send_window.hpp"
#include "simverbs/wire/ethernet_headers.hpp"

namespace simverbs {
namespace {

// Frames handed to the port before the engine waits for it: enough to keep the wire busy.
constexpr std::uint32_t kBurst = 16;

}  // namespace

RawPacketEngine::RawPacketEngine(const QpAttributes& attributes, const Personality& personality,
                                 const WorkQueueShape& send, std::uint32_t receive_segments,
                                 FrameOffloads offloads, QpMemory memory, Effects& effects)
    : attributes_(attributes),
      personality_(personality),
      shape_(send),
      memory_(memory),
      effects_(effects),
      tail_(send.slots == 0 ? 0 : send.stride - sizeof(SendWqe)),
      spans_(std::max<std::size_t>(1, send.max_segments)),
      receiver_(personality, receive_segments, offloads, effects) {}

// Believes a producer index only as far as the queue is deep.
void RawPacketEngine::post(std::uint32_t producer) {
    if (producer - next_ <= shape_.slots) {
        posted_ = producer;
    }
}

EngineResult RawPacketEngine::run() {
    EngineResult failure;
    if (waits_for_its_rate()) {
        return failure;
    }
    for (std::uint32_t sent = 0; sent < kBurst; ++sent) {
        if (attributes_.state != QpState::kRts || !send_next(failure)) {
            return failure;
        }
        if (attributes_.pacing.rate_kbps != 0 && burst_bytes_ >= attributes_.pacing.burst_bytes) {
            const fabric::SimDuration gap = gap_after(std::exchange(burst_bytes_, 0));
            effects_.arm_when_transmitter_free(EngineTimer::kPacing, gap);
            return failure;
        }
    }
    if (next_ != posted_) {
        effects_.arm_when_transmitter_free(EngineTimer::kPacing, {});
    }
    return failure;
}

// The timer of a paced queue pair runs in the gap after what it has sent.
bool RawPacketEngine::waits_for_its_rate() const {
    return attributes_.pacing.rate_kbps != 0 && effects_.armed(EngineTimer::kPacing);
}

fabric::SimDuration RawPacketEngine::gap_after(std::uint64_t bytes) const {
    constexpr std::uint64_t kPicosecondsPerBitAtOneKbps = 1'000'000'000;
    const std::uint64_t bits = bytes * 8;
    const std::uint64_t rate = attributes_.pacing.rate_kbps;
    return fabric::SimDuration(
        static_cast<std::int64_t>(bits / rate * kPicosecondsPerBitAtOneKbps +
                                  bits % rate * kPicosecondsPerBitAtOneKbps / rate));
}

bool RawPacketEngine::send_next(EngineResult& failure) {
    if (next_ == posted_) {
        return false;
    }
    const std::uint32_t index = next_;
    Send send = fetch(index);
    if (send.status == WcStatus::kSuccess) {
        gather(send);
    }
    if (send.status == WcStatus::kSuccess &&
        send.wqe.opcode == static_cast<std::uint8_t>(WrOpcode::kTso)) {
        cut(send);
    }
    if (send.status == WcStatus::kSuccess) {
        const FrameVerdict verdict =
            effects_.transmit_frame(send.frame, has_flag(send.wqe, SendFlag::kIpCsum));
        if (verdict == FrameVerdict::kWrongLength) {
            send.status = WcStatus::kLocLenErr;
            send.cause = FaultCause::kMessageTooLong;
        } else if (verdict == FrameVerdict::kUnreadable) {
            send.status = WcStatus::kLocProtErr;
            send.cause = FaultCause::kGatherRange;
        }
    }
    const bool has_more = send.has_more && send.status == WcStatus::kSuccess;
    cut_off_ = has_more ? cut_off_ + segmentation_of(send.wqe).segment_bytes : 0;
    burst_bytes_ = attributes_.pacing.rate_kbps == 0 ? 0 : burst_bytes_ + send.frame.length;
    if (has_more) {
        return true;
    }
    ++next_;
    const bool goes_on = complete(send, index);
    if (send.status != WcStatus::kSuccess) {
        failure = EngineFailure{QpTrigger::kSendError, send.cause};
    }
    return goes_on && !failure;
}

RawPacketEngine::Send RawPacketEngine::fetch(std::uint32_t index) {
    Send send;
    const FetchVerdict verdict = effects_.fetch_send(index, send.wqe, tail_);
    send.status = verdict.failure;
    send.cause = verdict.cause;
    return send;
}

// Finds the bytes of a send, or why there are none.
void RawPacketEngine::gather(Send& send) {
    const auto refuse = [&send](WcStatus status, FaultCause cause) {
        send.status = status;
        send.cause = cause;
    };
    const SendWqe& wqe = send.wqe;
    const WrOpcodeProperties* opcode = find_wr_opcode(wqe.opcode);
    const bool segmented = opcode != nullptr && opcode->opcode == WrOpcode::kTso &&
                           personality_.limits.tso_services.contains(Service::kRawPacket);
    if (opcode == nullptr || (opcode->opcode != WrOpcode::kSend && !segmented)) {
        refuse(WcStatus::kLocQpOpErr, FaultCause::kOpcodeNotForService);
        return;
    }
    const bool is_inline = has_flag(wqe, SendFlag::kInline) && opcode->may_be_inline;
    if (is_inline ? wqe.inline_length > tail_.size() : wqe.segment_count > shape_.max_segments) {
        refuse(WcStatus::kLocQpOpErr, FaultCause::kMalformedSend);
        return;
    }
    if (is_inline) {
        spans_[0] = {reinterpret_cast<std::uint64_t>(tail_.data()), wqe.inline_length};
        send.frame = {memory_.device, spans_.data(), 0, wqe.inline_length, 1};
        return;
    }
    const auto* segments = reinterpret_cast<const Segment*>(tail_.data());
    std::uint32_t count = 0;
    std::uint64_t length = 0;
    for (std::uint16_t i = 0; i < wqe.segment_count; ++i) {
        if (segments[i].length == 0) {
            continue;  // no bytes, no key check (IBA 10.7.2.2)
        }
        const Grant grant = effects_.open_local(segments[i], {});
        if (grant.verdict != KeyVerdict::kGranted) {
            refuse(WcStatus::kLocProtErr, grant.verdict == KeyVerdict::kOutOfRange
                                              ? FaultCause::kGatherRange
                                              : FaultCause::kGatherKey);
            return;
        }
        spans_[count++] = grant.span;
        length += segments[i].length;
    }
    if (length > UINT32_MAX) {
        refuse(WcStatus::kLocLenErr, FaultCause::kMessageTooLong);
        return;
    }
    send.frame = {memory_.application, spans_.data(), 0, static_cast<std::uint32_t>(length), count};
}

// Leaves of a send the frame that comes next: its header as that frame's, and a part of the data.
void RawPacketEngine::cut(Send& send) {
    const auto refuse = [&send](WcStatus status, FaultCause cause) {
        send.status = status;
        send.cause = cause;
    };
    const Segmentation how = segmentation_of(send.wqe);
    const std::size_t header_at = shape_.max_segments * sizeof(Segment);
    const std::uint64_t length = send.frame.length;
    if (how.segment_bytes == 0 || how.header_bytes > tail_.size() - header_at ||
        cut_off_ > length ||
        !is_tcp_header(std::span(tail_).subspan(header_at, how.header_bytes))) {
        refuse(WcStatus::kLocQpOpErr, FaultCause::kMalformedSend);
        return;
    }
    if (length > personality_.limits.max_tso_bytes) {
        refuse(WcStatus::kLocLenErr, FaultCause::kMessageTooLong);
        return;
    }
    const auto part =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(how.segment_bytes, length - cut_off_));
    send.has_more = cut_off_ + part < length;
    const auto* header = tail_.data() + header_at;
    header_.assign(header, header + how.header_bytes);
    adjust_tcp_header(header_, {.number = static_cast<std::uint32_t>(cut_off_ / how.segment_bytes),
                                .offset = static_cast<std::uint32_t>(cut_off_),
                                .length = part,
                                .is_last = !send.has_more});
    parts_.clear();
    parts_.push_back(
        {reinterpret_cast<std::uint64_t>(header_.data()), how.header_bytes, MemoryKind::kDevice});
    std::uint64_t skip = cut_off_;
    std::uint32_t left = part;
    for (std::uint32_t i = 0; i < send.frame.span_count && left > 0; ++i) {
        MemorySpan span = spans_[i];
        if (skip >= span.length) {
            skip -= span.length;
            continue;
        }
        span.address += skip;
        span.length = std::min(span.length - static_cast<std::uint32_t>(skip), left);
        left -= span.length;
        skip = 0;
        parts_.push_back(span);
    }
    send.frame = {memory_.application, parts_.data(), 0, how.header_bytes + part,
                  static_cast<std::uint32_t>(parts_.size())};
}

bool RawPacketEngine::complete(const Send& send, std::uint32_t index) {
    SendCompletion completion;
    completion.wr_id = send.wqe.wr_id;
    completion.status = send.status;
    completion.cause = send.cause;
    const WrOpcodeProperties* opcode = find_wr_opcode(send.wqe.opcode);
    completion.opcode = opcode == nullptr ? WcOpcode::kSend : opcode->completion;
    completion.freed_to = index + 1;
    return effects_.complete(
        completion, send.status != WcStatus::kSuccess || has_flag(send.wqe, SendFlag::kSignaled));
}

void RawPacketEngine::flush_sends() {
    while (next_ != posted_) {
        const std::uint32_t index = next_++;
        cut_off_ = 0;
        Send send = fetch(index);
        send.status = WcStatus::kWrFlushErr;
        send.cause = FaultCause::kFlushed;
        complete(send, index);
    }
}

}  // namespace simverbs
