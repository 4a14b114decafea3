// One send request on its way into a slot of the ring, for ibv_post_send() and ibv_wr_*() alike:
// what a provider finds out before it rings the doorbell is found out here.
//
// With the queue's lock held: begin_send() on a new or cleared draft, then put_segments() or
// put_inline() at most once and whatever else of draft.wqe the operation needs, then finish_send().
// Each returns an errno, after which the request does not exist. No allocation, no lock.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <infiniband/verbs.h>

#include "simverbs/abi/objects.hpp"
#include "simverbs/model/opcodes.hpp"

namespace simverbs::abi {

// A C program may put any number there, which is no value of the enumeration to C++.
inline std::uint32_t opcode_of(const ibv_send_wr& wr) {
    std::uint32_t opcode = 0;
    static_assert(sizeof opcode == sizeof wr.opcode);
    std::memcpy(&opcode, &wr.opcode, sizeof opcode);
    return opcode;
}

static_assert(sizeof(Segment) == sizeof(ibv_sge) &&
              offsetof(Segment, address) == offsetof(ibv_sge, addr) &&
              offsetof(Segment, length) == offsetof(ibv_sge, length) &&
              offsetof(Segment, lkey) == offsetof(ibv_sge, lkey));

// The errors by which the two ways of posting refuse the same mistakes.
struct PostErrors {
    int queue_full = ENOMEM;
    int too_much = EINVAL;  // more segments or inline bytes than the queue pair takes
};

struct SendDraft {
    std::byte* slot = nullptr;                   // null: no request has begun
    const WrOpcodeProperties* opcode = nullptr;  // null: unknown, and completes in error
    std::uint64_t length = 0;                    // of all segments
    PostErrors errors;
    SendWqe wqe;
};

namespace detail {
inline constexpr unsigned kSendFlagBits = 0x1F;
inline constexpr std::uint8_t kInlineFlag = static_cast<std::uint8_t>(SendFlag::kInline);
inline constexpr std::uint8_t kSignaledFlag = static_cast<std::uint8_t>(SendFlag::kSignaled);
inline constexpr std::uint8_t kNoOpcode = 0xFF;

constexpr bool refuses(BadRequest choice, bool is_bad) {
    return is_bad && choice == BadRequest::kRefuse;
}
}  // namespace detail

// Nothing when sends may be posted in the state that the queue pair is in.
inline std::optional<PostTooEarly> too_early_to_send(const QueuePair& qp,
                                                     const Personality& personality) {
    const QpState state = qp.queues.state();
    if (state == QpState::kRts || state == QpState::kSqd || state == QpState::kSqe ||
        state == QpState::kErr) {
        return std::nullopt;
    }
    return personality.post_send_before_rts;
}

// `flags`: of enum ibv_send_flags. A request with IBV_SEND_INLINE that keeps it in draft.wqe.flags
// is to be given its bytes.
inline int begin_send(QueuePair& qp, const Personality& personality, std::uint32_t opcode,
                      std::uint64_t wr_id, unsigned flags, SendDraft& draft) {
    draft.opcode = find_wr_opcode(opcode);
    if (draft.opcode != nullptr && !offers(personality, draft.opcode->message)) {
        draft.opcode = nullptr;  // younger than the device and its driver
    }
    const bool known = draft.opcode != nullptr;
    const Service service = qp.service->service;
    const bool for_service = known && carries_out(personality, *draft.opcode, service);
    const bool may_be_inline = known && draft.opcode->may_be_inline;
    const bool wants_inline = (flags & detail::kInlineFlag) != 0;
    if (known && !for_service && draft.opcode->opcode == WrOpcode::kTso &&
        draft.opcode->services.contains(service)) {
        return EOPNOTSUPP;  // an offload that this device has not
    }
    if (detail::refuses(personality.unknown_opcode, !known) ||
        (known && detail::refuses(not_for_service(personality, draft.opcode->opcode, service),
                                  !for_service)) ||
        detail::refuses(personality.inline_on_read, known && wants_inline && !may_be_inline)) {
        return EINVAL;
    }
    draft.slot = qp.queues.send().free_slot();
    if (draft.slot == nullptr) {
        if (qp.queues.send().shape().slots > 0 && qp.queues.send().is_free(qp.signaled - 1)) {
            qp.mistake = Misuse::kOnlyUnsignaledSends;
        }
        return draft.errors.queue_full;
    }
    const bool ignores_inline =
        wants_inline && !may_be_inline && personality.inline_on_read == BadRequest::kIgnore;
    draft.length = 0;
    draft.wqe.wr_id = wr_id;
    draft.wqe.opcode = known ? static_cast<std::uint8_t>(opcode) : detail::kNoOpcode;
    draft.wqe.flags = static_cast<std::uint8_t>(
        (flags & detail::kSendFlagBits & ~(ignores_inline ? detail::kInlineFlag : 0U)) |
        (qp.signals_all ? detail::kSignaledFlag : 0U));
    return 0;
}

inline int put_segments(QueuePair& qp, const ibv_sge* segments, std::size_t count,
                        SendDraft& draft) {
    if (count > qp.queues.send().shape().max_segments) {
        return draft.errors.too_much;
    }
    draft.length = 0;
    for (std::size_t i = 0; i < count; ++i) {
        draft.length += segments[i].length;
        if (segments[i].length == 0) [[unlikely]] {
            qp.mistake = Misuse::kEmptySegment;
        }
    }
    std::copy_n(segments, count, reinterpret_cast<ibv_sge*>(draft.slot + sizeof draft.wqe));
    draft.wqe.segment_count = static_cast<std::uint16_t>(count);
    return 0;
}

// Copies what `range_of` gives, a range of bytes for each index below `count`.
template <class F>
int put_inline(const QueuePair& qp, std::size_t count, F&& range_of, SendDraft& draft) {
    std::byte* tail = draft.slot + sizeof draft.wqe;
    std::size_t length = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::span<const std::byte> bytes = range_of(i);
        if (bytes.size() > qp.inline_bytes - length) {
            return draft.errors.too_much;
        }
        std::copy_n(bytes.data(), bytes.size(), tail + length);
        length += bytes.size();
    }
    draft.length = length;
    draft.wqe.inline_length = static_cast<std::uint32_t>(length);
    draft.wqe.flags |= detail::kInlineFlag;
    return 0;
}

// Copies what stands before the data of each frame of a TSO; the request's own, copied.
inline int put_header(const QueuePair& qp, const void* header, std::uint16_t bytes,
                      std::uint16_t segment_bytes, SendDraft& draft) {
    constexpr std::uint16_t kEthernetBytes = 14;
    if (bytes < kEthernetBytes || bytes > qp.tso_header_bytes || segment_bytes == 0) {
        return EINVAL;
    }
    std::memcpy(
        draft.slot + sizeof draft.wqe + qp.queues.send().shape().max_segments * sizeof(Segment),
        header, bytes);
    put_segmentation({bytes, segment_bytes}, draft.wqe);
    return 0;
}

// Takes the mistake that is to be named once the queue's lock is free.
inline std::optional<Misuse> take_mistake(QueuePair& qp) {
    const std::optional<Misuse> mistake = qp.mistake;
    if (mistake) [[unlikely]] {
        qp.mistake.reset();
    }
    return mistake;
}

// The eight bytes of an ATOMIC_WRITE: they need no inline capacity, only a slot with room for one
// segment.
inline int put_atomic_value(const QueuePair& qp, const void* value, SendDraft& draft) {
    const std::size_t room = std::max<std::size_t>(
        qp.queues.send().shape().max_segments * sizeof(Segment), qp.inline_bytes);
    if (room < kAtomicBytes) {
        return draft.errors.too_much;
    }
    std::memcpy(draft.slot + sizeof draft.wqe, value, kAtomicBytes);
    draft.length = draft.wqe.inline_length = kAtomicBytes;
    draft.wqe.flags |= detail::kInlineFlag;
    return 0;
}

namespace detail {
// Notes whose bytes the device takes, and what is wrong with the keys.
inline void watch(QueuePair& qp, const SendDraft& draft) {
    const SendWqe& wqe = draft.wqe;
    const WrOpcodeProperties* opcode = draft.opcode;
    const auto* segments = reinterpret_cast<const ibv_sge*>(draft.slot + sizeof wqe);
    const bool takes_bytes = opcode != nullptr && !opcode->returns_data;
    std::optional<Misuse> mistake =
        qp.watch()->posted({CompletedQueue::kSend, qp.queues.qpn()}, qp.queues.send().producer(),
                           wqe.wr_id, {segments, wqe.segment_count}, takes_bytes);
    if (opcode != nullptr && opcode->addresses_remote && draft.length > 0 &&
        qp.watch()->is_dead_remote_key(wqe.rkey)) {
        mistake = Misuse::kKeyAfterDereg;
    }
    if (mistake) {
        qp.mistake = mistake;
    }
}
}  // namespace detail

// The device may see it after the queue is published.
inline int finish_send(QueuePair& qp, const Personality& personality, SendDraft& draft) {
    if (draft.opcode != nullptr && draft.opcode->atomic &&
        (detail::refuses(personality.atomic_not_eight_bytes, draft.length < kAtomicBytes) ||
         detail::refuses(personality.atomic_misaligned,
                         draft.wqe.remote_address % kAtomicBytes != 0))) {
        return EINVAL;
    }
    std::memcpy(draft.slot, &draft.wqe, sizeof draft.wqe);
    if (qp.watch() != nullptr) [[unlikely]] {
        detail::watch(qp, draft);
    }
    draft.slot = nullptr;
    qp.queues.send().push();
    if ((draft.wqe.flags & detail::kSignaledFlag) != 0) {
        qp.signaled = qp.queues.send().producer();
    }
    return 0;
}

}  // namespace simverbs::abi
