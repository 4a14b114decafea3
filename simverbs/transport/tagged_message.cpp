// Messages with tag headers at the responder: which buffer each takes, what of it lands there, and
// the rendezvous that the device carries out (rdma-core, Documentation/tag_matching.md).
#include <algorithm>
#include <array>
#include <cstring>

#include "simverbs/transport/responder.hpp"

namespace simverbs {
namespace {

constexpr std::uint32_t kHeaderBytes = TagHeader::kBytes;
constexpr std::uint32_t kRendezvousBytes = kHeaderBytes + RendezvousHeader::kBytes;
// READs of rendezvous that wait or are under way; others are left to software.
constexpr std::size_t kMostRendezvous = kMostTags;

DeviceWork read_of(const RendezvousHeader& from, const TaggedBuffer& into) {
    DeviceWork request;
    request.wqe.opcode = static_cast<std::uint8_t>(WrOpcode::kRdmaRead);
    request.wqe.segment_count = 1;
    request.wqe.remote_address = from.address;
    request.wqe.rkey = from.rkey;
    const Segment segment{into.segment.address, from.length, into.segment.lkey};
    static_assert(sizeof segment <= sizeof request.tail);
    std::memcpy(request.tail.data(), &segment, sizeof segment);
    return request;
}

// The sender's buffer is its own again.
DeviceWork fin_of(const TagHeader& header) {
    DeviceWork request;
    request.wqe.opcode = static_cast<std::uint8_t>(WrOpcode::kSend);
    request.wqe.flags = static_cast<std::uint8_t>(SendFlag::kInline);
    request.wqe.inline_length = kHeaderBytes;
    build({TagOpcode::kFinish, header.context, header.tag}, request.tail);
    return request;
}

}  // namespace

// False where the sender's bytes cannot be read. Whatever is too short for its headers, or has an
// opcode that is none, has no tag.
bool Responder::read_tag(const Packet& packet) {
    TaggedMessage& message = matching_->message;
    message = {};
    if (packet.payload.length < kHeaderBytes) {
        return true;
    }
    std::array<std::byte, kRendezvousBytes> bytes{};
    const std::span<std::byte> head =
        std::span(bytes).first(std::min(packet.payload.length, kRendezvousBytes));
    if (effects_.read_head(packet.payload, head) != CopyOutcome::kCopied) {
        return false;
    }
    const TagHeader header = parse_tag_header(std::span(bytes).first<kHeaderBytes>());
    const bool is_rendezvous =
        header.opcode == TagOpcode::kRendezvous && head.size() == kRendezvousBytes;
    message.header = header;
    if (is_rendezvous) {
        message.rendezvous = parse_rendezvous_header(
            std::span(bytes).last<static_cast<std::size_t>(RendezvousHeader::kBytes)>());
    }
    if (is_rendezvous || header.opcode == TagOpcode::kEager) {
        message.outcome = TagOutcome::kUnexpected;
    }
    return true;
}

// A message without a tag in the list takes an ordinary receive, headers and all.
Responder::Verdict Responder::take_by_tag(const Packet& packet) {
    if (!read_tag(packet)) {
        effects_.source_fault(packet);
        return Verdict::kAnswered;
    }
    TaggedMessage& message = matching_->message;
    const bool has_tag = message.outcome != TagOutcome::kNoTag;
    if (const auto buffer = has_tag ? matching_->tags.match(message.header.tag) : std::nullopt) {
        message.outcome = TagOutcome::kMatched;
        message.buffer = *buffer;
        take_tagged_buffer(packet);
    } else if (!take_receive(packet)) {
        return wait_for_receive(packet);
    } else if (has_tag) {
        if (matching_->tags.would_match(message.header.tag)) {
            message.outcome = TagOutcome::kNotInUse;
        }
        matching_->tags.count_unexpected();
    }
    receive_.by_tag = true;
    effects_.decided({message.outcome, message.header.opcode, message.header.tag,
                      message.buffer.handle, message.by_device});
    return Verdict::kPassed;
}

void Responder::take_tagged_buffer(const Packet& packet) {
    TaggedMessage& message = matching_->message;
    const Segment& segment = message.buffer.segment;
    receive_.taken = true;
    receive_.wqe = {message.buffer.wr_id, segment.length > 0 ? 1U : 0U, 0};
    receive_.index = 0;
    receive_.room = segment.length;
    receive_.unplaced = kHeaderBytes;
    segments_[0] = segment;
    if (message.header.opcode != TagOpcode::kRendezvous) {
        return;
    }
    const DeviceLimits& limits = personality_.limits;
    message.by_device = packet.operation().ends_message &&
                        packet.payload.length <= limits.tag_matching.max_rendezvous_message_bytes &&
                        message.rendezvous.length <= segment.length &&
                        message.rendezvous.length <= limits.port.max_message_bytes &&
                        attributes_.max_rd_atomic > 0 &&
                        matching_->rendezvous.size() < kMostRendezvous;
    if (message.by_device) {
        receive_.unplaced = packet.payload.length;
    }
}

void Responder::name_tag(ReceiveCompletion& completion) const {
    const TaggedMessage& message = matching_->message;
    const bool has_tag = message.outcome != TagOutcome::kNoTag;
    completion.opcode = has_tag ? WcOpcode::kTmRecv : WcOpcode::kTmNoTag;
    completion.has_tag = has_tag;
    completion.tag = {message.header.tag, message.header.context};
    completion.buffer = message.outcome == TagOutcome::kMatched ? &message.buffer : nullptr;
    if (completion.buffer != nullptr) {
        completion.freed_to = message.buffer.handle + 1U;
        completion.byte_length -= static_cast<std::uint32_t>(
            std::min<std::uint64_t>(completion.byte_length, receive_.unplaced));
    }
}

// The data is still to come: that has a completion of its own.
void Responder::announce_match(ReceiveCompletion completion) {
    TaggedMessage& message = matching_->message;
    if (message.outcome != TagOutcome::kMatched) {
        return;
    }
    message.announced = true;
    name_tag(completion);
    completion.byte_length = 0;
    completion.has_immediate = completion.invalidated = false;
    completion.solicited = false;
    completion.tag_flags = WcFlag::kTmMatch;
    complete(completion);
}

void Responder::complete_tagged(const Packet& packet) {
    const TaggedMessage& message = matching_->message;
    if (message.by_device) {
        begin_rendezvous(packet);
        return;
    }
    ReceiveCompletion completion = completion_of(packet);
    name_tag(completion);
    if (message.outcome == TagOutcome::kMatched) {
        completion.tag_flags = message.announced ? WcFlags(WcFlag::kTmDataValid)
                                                 : WcFlag::kTmMatch | WcFlag::kTmDataValid;
        if (message.header.opcode == TagOpcode::kRendezvous) {
            completion.status = WcStatus::kTmRndvIncomplete;
            completion.cause = FaultCause::kRendezvousLeftToSoftware;
        }
    } else if (message.outcome != TagOutcome::kNoTag && matching_->tags.is_far_behind()) {
        completion.tag_flags = WcFlag::kTmSyncReq;
    }
    receive_.taken = false;
    complete(completion);
}

// The READ is on its way before anybody hears of the match: what ends the queue pair then ends it.
void Responder::begin_rendezvous(const Packet& packet) {
    const TaggedMessage& message = matching_->message;
    matching_->rendezvous.push_back(
        {message.buffer, message.header, message.rendezvous.length, packet.solicited});
    effects_.send_of_device(read_of(message.rendezvous, message.buffer));
    receive_.taken = false;
    announce_match(completion_of(packet));
}

bool Responder::rendezvous_ended(FaultCause cause) {
    if (matching_ == nullptr || matching_->rendezvous.empty()) {
        return true;
    }
    const Rendezvous ended = matching_->rendezvous.front();
    matching_->rendezvous.erase(matching_->rendezvous.begin());
    ReceiveCompletion completion;
    completion.wr_id = ended.buffer.wr_id;
    completion.opcode = WcOpcode::kTmRecv;
    completion.buffer = &ended.buffer;
    completion.freed_to = ended.buffer.handle + 1U;
    completion.has_tag = true;
    completion.tag = {ended.header.tag, ended.header.context};
    completion.tag_flags = WcFlag::kTmDataValid;
    completion.solicited = ended.solicited;
    if (cause == FaultCause::kSuccess) {
        completion.byte_length = ended.length;
        effects_.send_of_device(fin_of(ended.header));
    } else {
        completion.status = WcStatus::kTmRndvIncomplete;
        completion.cause = FaultCause::kRendezvousReadFailed;
        completion.tag_flags = {};
    }
    return effects_.complete(completion);
}

// Software never sees a failed message, so it cannot count it.
void Responder::fail_tagged(ReceiveCompletion& completion) {
    const TagOutcome outcome = matching_->message.outcome;
    name_tag(completion);
    if (outcome == TagOutcome::kUnexpected || outcome == TagOutcome::kNotInUse) {
        matching_->tags.discount_unexpected();
    }
    receive_.taken = false;
    complete(completion);
}

void Responder::give_up_tags() {
    if (matching_ == nullptr) {
        return;
    }
    if (receive_.taken && receive_.by_tag && matching_->message.outcome == TagOutcome::kMatched) {
        end_receive(WcStatus::kWrFlushErr, MessageKind::kSend, FaultCause::kFlushed);
    }
    while (!matching_->rendezvous.empty()) {
        rendezvous_ended(FaultCause::kFlushed);
    }
}

}  // namespace simverbs
