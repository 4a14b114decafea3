#include "tests/transport/recording_effects.hpp"

#include <algorithm>

namespace simverbs::test {

FetchVerdict RecordingEffects::fetch_send(std::uint32_t index, SendWqe& wqe,
                                          std::span<std::byte> tail) {
    const PostedSend& send = sends.at(index);
    wqe = send.wqe;
    const auto bytes = send.inline_bytes.empty() ? std::as_bytes(std::span(send.segments))
                                                 : std::span<const std::byte>(send.inline_bytes);
    std::copy_n(bytes.begin(), std::min(bytes.size(), tail.size()), tail.begin());
    return {};
}

bool RecordingEffects::take_receive(SrqNumber /*srq*/, RecvWqe& wqe, std::span<Segment> segments,
                                    std::uint32_t& index) {
    if (receives.empty()) {
        return false;
    }
    const PostedReceive receive = receives.front();
    receives.pop_front();
    wqe = {.wr_id = receive.wr_id,
           .segment_count = static_cast<std::uint32_t>(receive.segments.size())};
    std::copy_n(receive.segments.begin(), std::min(receive.segments.size(), segments.size()),
                segments.begin());
    index = receives_taken_++;
    return true;
}

bool RecordingEffects::complete(const SendCompletion& completion, bool signaled) {
    if (signaled) {
        sent.push_back(completion);
    }
    return !overruns;
}

bool RecordingEffects::complete(const ReceiveCompletion& completion) {
    received.push_back(completion);
    return !overruns;
}

void RecordingEffects::end(const EngineResult& result) {
    if (overruns) {
        fail(QpTrigger::kQpError, FaultCause::kCqOverrun);
    }
    if (result) {
        fail(result.failure().trigger, result.failure().cause);
    }
}

void RecordingEffects::fail(QpTrigger trigger, FaultCause cause) {
    const auto to = next_state(attributes_.state, trigger, attributes_.service);
    if (!to) {
        return;  // down already
    }
    failures.push_back(cause);
    attributes_.state = *to;
    if (on_fail) {
        on_fail();
    }
}

Grant RecordingEffects::open(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                             AccessRights needed) const {
    if (revoked.contains(key)) {
        return {KeyVerdict::kUnknownKey, {}};
    }
    if (key == kOtherPdKey) {
        return {KeyVerdict::kOtherProtectionDomain, {}};
    }
    if (key != kGoodKey && key != kReadOnlyKey) {
        return {KeyVerdict::kUnknownKey, {}};
    }
    if (address + length > kEnd) {
        return {KeyVerdict::kOutOfRange, {}};
    }
    if (key == kReadOnlyKey && !needed.empty()) {
        return {KeyVerdict::kRightMissing, {}};
    }
    return {KeyVerdict::kGranted, {address, static_cast<std::uint32_t>(length)}};
}

}  // namespace simverbs::test
