#include "simverbs/transport/raw_packet.hpp"

#include <algorithm>
#include <utility>

namespace simverbs {
namespace {

// Frames handed to the port before the engine waits for it: enough to keep the wire busy.
constexpr std::uint32_t kBurst = 16;

bool set(const SendWqe& wqe, SendFlag flag) {
    return SendFlags::from_bits(wqe.flags).contains(flag);
}

}  // namespace

RawPacketEngine::RawPacketEngine(const QpAttributes& attributes, const Personality& personality,
                                 const WorkQueueShape& send, std::uint32_t receive_segments,
                                 QpMemory memory, Effects& effects)
    : attributes_(attributes),
      personality_(personality),
      shape_(send),
      memory_(memory),
      effects_(effects),
      tail_(send.slots == 0 ? 0 : send.stride - sizeof(SendWqe)),
      spans_(std::max<std::size_t>(1, send.max_segments)),
      receiver_(personality, receive_segments, effects) {}

// Believes a producer index only as far as the queue is deep.
void RawPacketEngine::post(std::uint32_t producer) {
    if (producer - next_ <= shape_.slots) {
        posted_ = producer;
    }
}

void RawPacketEngine::run() {
    if (waits_for_its_rate()) {
        return;
    }
    for (std::uint32_t sent = 0; sent < kBurst; ++sent) {
        if (attributes_.state != QpState::kRts || !send_next()) {
            return;
        }
        if (attributes_.pacing.rate_kbps != 0 && burst_bytes_ >= attributes_.pacing.burst_bytes) {
            const fabric::SimDuration gap = gap_after(std::exchange(burst_bytes_, 0));
            effects_.arm_when_transmitter_free(EngineTimer::kPacing, gap);
            return;
        }
    }
    if (next_ != posted_) {
        effects_.arm_when_transmitter_free(EngineTimer::kPacing, {});
    }
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

bool RawPacketEngine::send_next() {
    if (next_ == posted_) {
        return false;
    }
    const std::uint32_t index = next_;
    Send send = fetch(index);
    if (send.status == WcStatus::kSuccess) {
        gather(send);
    }
    if (send.status == WcStatus::kSuccess) {
        const FrameVerdict verdict =
            effects_.transmit_frame(send.frame, set(send.wqe, SendFlag::kIpCsum));
        if (verdict == FrameVerdict::kWrongLength) {
            send.status = WcStatus::kLocLenErr;
            send.cause = FaultCause::kMessageTooLong;
        } else if (verdict == FrameVerdict::kUnreadable) {
            send.status = WcStatus::kLocProtErr;
            send.cause = FaultCause::kGatherRange;
        }
    }
    ++next_;
    burst_bytes_ = attributes_.pacing.rate_kbps == 0 ? 0 : burst_bytes_ + send.frame.length;
    complete(send, index);
    if (send.status != WcStatus::kSuccess) {
        effects_.fail(QpTrigger::kSendError, send.cause);
        return false;
    }
    return true;
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
    if (opcode == nullptr || opcode->opcode != WrOpcode::kSend) {
        refuse(WcStatus::kLocQpOpErr, FaultCause::kOpcodeNotForService);
        return;
    }
    const bool is_inline = set(wqe, SendFlag::kInline);
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

void RawPacketEngine::complete(const Send& send, std::uint32_t index) {
    SendCompletion completion;
    completion.wr_id = send.wqe.wr_id;
    completion.status = send.status;
    completion.cause = send.cause;
    const WrOpcodeProperties* opcode = find_wr_opcode(send.wqe.opcode);
    completion.opcode = opcode == nullptr ? WcOpcode::kSend : opcode->completion;
    completion.freed_to = index + 1;
    effects_.complete(completion,
                      send.status != WcStatus::kSuccess || set(send.wqe, SendFlag::kSignaled));
}

void RawPacketEngine::flush() {
    while (next_ != posted_) {
        const std::uint32_t index = next_++;
        Send send = fetch(index);
        send.status = WcStatus::kWrFlushErr;
        send.cause = FaultCause::kFlushed;
        complete(send, index);
    }
}

void RawPacketEngine::reset() {
    posted_ = next_ = 0;
    burst_bytes_ = 0;
    effects_.disarm(EngineTimer::kPacing);
    receiver_.reset();
}

}  // namespace simverbs
