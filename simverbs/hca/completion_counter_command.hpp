// Commands about completion counters, and the memory in which a driver reads them.
#pragma once

#include <atomic>
#include <cstdint>

#include "simverbs/hca/command_code.hpp"

namespace simverbs {

// The operations that a counter may count; bit n of a mask stands for the n-th, as in enum
// ibv_qp_attach_comp_cntr_op.
enum class CountedOperation : std::uint32_t {
    kSend,
    kReceive,
    kRead,
    kRemoteRead,  // carried out here for the peer
    kWrite,
    kRemoteWrite,
};
inline constexpr std::uint32_t kCountedOperations = 6;
inline constexpr std::uint32_t kAllCountedOperations = (1U << kCountedOperations) - 1;

enum class CounterEntry : std::uint32_t { kCompleted, kFailed };
inline constexpr std::uint32_t kCounterEntries = 2;

// The memory of one counter, by CounterEntry. Written by the device alone.
struct CompletionCounterRing {
    std::atomic<std::uint64_t> values[kCounterEntries];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct CreateCompletionCounterReply {
    std::uint32_t handle = 0;
    RingReply ring;
};
// ENOMEM beyond as many as the device reports, EOPNOTSUPP where that is none.
struct CreateCompletionCounter {
    static constexpr CommandCode kCode = CommandCode::kCreateCompletionCounter;
    using Reply = CreateCompletionCounterReply;
    std::uint32_t context = 0;
};

// EBUSY while a queue pair counts on it.
struct DestroyCompletionCounter {
    static constexpr CommandCode kCode = CommandCode::kDestroyCompletionCounter;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct SetCompletionCounter {
    static constexpr CommandCode kCode = CommandCode::kSetCompletionCounter;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    CounterEntry entry = CounterEntry::kCompleted;
    std::uint64_t value = 0;
};

// Modulo 2^64.
struct IncrementCompletionCounter {
    static constexpr CommandCode kCode = CommandCode::kIncrementCompletionCounter;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    CounterEntry entry = CounterEntry::kCompleted;
    std::uint64_t amount = 0;
};

// EINVAL unless the queue pair is in RESET or INIT, EBUSY where another counter has one of the
// operations already.
struct AttachCompletionCounter {
    static constexpr CommandCode kCode = CommandCode::kAttachCompletionCounter;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t qp = 0;
    std::uint32_t operations = 0;  // mask of CountedOperation
};

}  // namespace simverbs
