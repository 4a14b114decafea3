// Work requests and completions, events and counters, as a protocol engine causes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/hw_counters.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/packet_fate.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/transport/work_queue.hpp"
#include "simverbs/wire/packet.hpp"
#include "simverbs/wire/tag_headers.hpp"

namespace simverbs {

// The result of bringing a work request in: how it fails, if it does.
struct FetchVerdict {
    WcStatus failure = WcStatus::kSuccess;
    FaultCause cause = FaultCause::kSuccess;
};

// A completion as an engine sees it; the queue pair adds its number and finds the queue.
struct SendCompletion {
    std::uint64_t wr_id = 0;
    WcStatus status = WcStatus::kSuccess;
    WcOpcode opcode = WcOpcode::kSend;
    FaultCause cause = FaultCause::kSuccess;
    std::uint32_t byte_length = 0;
    bool has_immediate = false;  // only where the personality reports it to the sender
    std::uint32_t freed_to = 0;  // send queue index; see Cqe
};

// The result of matching a message with a tag header.
enum class TagOutcome : std::uint8_t {
    kMatched,
    kUnexpected,  // no tag matches: it takes an ordinary receive
    kNotInUse,    // likewise: a tag that would match waits until software has reported
    kNoTag,       // likewise: it says that it has none
};
inline constexpr auto kTagOutcomeNames =
    std::to_array<std::string_view>({"matched", "unexpected", "not in use", "no tag"});
constexpr std::string_view to_string(TagOutcome outcome) {
    return kTagOutcomeNames[static_cast<std::size_t>(outcome)];
}

// A message with a tag header has found its buffer.
struct TagDecision {
    TagOutcome outcome = TagOutcome::kNoTag;
    TagOpcode opcode = TagOpcode::kNoTag;
    std::uint64_t tag = 0;
    std::uint8_t handle = 0;  // of the tag that it matched
    bool by_device = false;   // a rendezvous that the device carries out
};

class QueueEffects {
  public:
    QueueEffects(const QueueEffects&) = delete;
    QueueEffects& operator=(const QueueEffects&) = delete;

    // Copies slot `index` of the send ring; `tail` takes its segments or its inline bytes.
    virtual FetchVerdict fetch_send(std::uint32_t index, SendWqe& wqe,
                                    std::span<std::byte> tail) = 0;
    // Returns true if requests to this queue pair may name that shared receive queue.
    [[nodiscard]] virtual bool is_served_by(SrqNumber srq) const = 0;

    // For the trace alone.
    virtual void decided(const TagDecision& decision) = 0;

    // The oldest READ of a rendezvous is over; kSuccess: its data has landed. As complete().
    virtual bool rendezvous_ended(FaultCause cause) = 0;

    // A request without acknowledgment went no further; nobody else is told.
    virtual void discarded(const Packet& packet, FaultCause cause) = 0;
    // A packet was not taken. For the trace alone.
    virtual void discarded(const Packet& packet, PacketFate fate) = 0;
    virtual bool complete(const SendCompletion& completion, bool signaled) = 0;

    // The retries are used up: true where an alternate path was armed, which is the path now.
    virtual bool migrate() = 0;
    virtual void raise(AsyncEvent event) = 0;
    // Successes are counted elsewhere: by delivered() and complete().
    virtual void count(HwCounter counter) = 0;

  protected:
    QueueEffects() = default;
    ~QueueEffects() = default;
};

}  // namespace simverbs
