// The effects that a queue of receives may cause: a queue pair's, or a work queue's.
#pragma once

#include <cstdint>
#include <span>

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/transport/memory_effects.hpp"
#include "simverbs/transport/tag_list.hpp"
#include "simverbs/transport/work_queue.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

struct ReceiveCompletion {
    std::uint64_t wr_id = 0;
    WcStatus status = WcStatus::kSuccess;
    WcOpcode opcode = WcOpcode::kRecv;
    FaultCause cause = FaultCause::kSuccess;
    std::uint32_t byte_length = 0;
    std::uint32_t immediate = 0;
    bool has_immediate = false;
    bool invalidated = false;  // `immediate` is the rkey
    bool solicited = false;
    bool has_grh = false;            // the first 40 bytes of a datagram's receive were filled
    std::uint32_t source_qpn = 0;    // of a datagram
    bool ip_checksum_holds = false;  // of a raw packet, like the next two
    std::uint32_t flow_tag = 0;
    std::uint16_t cvlan = 0;     // the tag that was taken out of it; 0: none
    std::uint32_t freed_to = 0;  // receive queue index; see Cqe
    SrqNumber srq = kNoSrq;      // that the receive was taken from, where its packet named one
    // Set for a message with a tag header, where the queue pair matches tags.
    const TaggedBuffer* buffer = nullptr;  // that it matched; freed_to is its handle + 1
    bool has_tag = false;                  // the next one is set
    TagInfo tag;
    WcFlags tag_flags;
};

// `srq`: see memory_effects.hpp.
class ReceiveEffects {
  public:
    ReceiveEffects(const ReceiveEffects&) = delete;
    ReceiveEffects& operator=(const ReceiveEffects&) = delete;

    // A segment of a receive, which is written to.
    [[nodiscard]] virtual Grant open_receive(SrqNumber srq, const Segment& segment) = 0;
    // Copies a packet's payload to `offset` bytes into this side's `spans`.
    virtual CopyOutcome place(SrqNumber srq, const Payload& from, std::span<const MemorySpan> spans,
                              std::uint64_t offset) = 0;
    // Takes the next receive; false when none is posted. Segments beyond `segments` are not copied.
    virtual bool take_receive(SrqNumber srq, RecvWqe& wqe, std::span<Segment> segments,
                              std::uint32_t& index) = 0;
    // A request has been carried out whole, `length` bytes of it.
    virtual void delivered(MessageKind kind, std::uint64_t length) = 0;
    // False where the completion takes the queue down, since its completion queue overran or a
    // fault was injected: the engine does nothing more. The queue knows the cause.
    virtual bool complete(const ReceiveCompletion& completion) = 0;

  protected:
    ReceiveEffects() = default;
    ~ReceiveEffects() = default;
};

}  // namespace simverbs
