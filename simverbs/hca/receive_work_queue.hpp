// A work queue of receives without a queue pair: frames come to it by an indirection table
// (ibv_create_wq(3)).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simverbs/hca/client.hpp"
#include "simverbs/hca/completion_queue.hpp"
#include "simverbs/hca/memory_region.hpp"
#include "simverbs/model/receive_hash.hpp"
#include "simverbs/model/wq_transitions.hpp"
#include "simverbs/transport/frame_receiver.hpp"
#include "simverbs/wire/toeplitz.hpp"

namespace simverbs {

class DeviceContext;

struct ReceiveWorkQueueParts {
    ProtectionDomain& pd;
    CompletionQueue& cq;
    RingMemory ring;
    WorkQueueShape shape;
    std::uint32_t number;
    FrameOffloads offloads;
};

class ReceiveWorkQueue final : private ReceiveEffects {
  public:
    ReceiveWorkQueue(DeviceContext& context, const ReceiveWorkQueueParts& parts);
    ~ReceiveWorkQueue();
    ReceiveWorkQueue(const ReceiveWorkQueue&) = delete;
    ReceiveWorkQueue& operator=(const ReceiveWorkQueue&) = delete;

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] ProtectionDomain& pd() const { return pd_; }
    [[nodiscard]] WqState state() const { return state_; }
    [[nodiscard]] bool in_use() const { return uses_ > 0; }
    // Places in indirection tables.
    void add_use() { ++uses_; }
    void remove_use() { --uses_; }

    // Commands of the consumer. An errno; with one, nothing has changed.
    int modify(WqState to);
    void posted();
    // A frame that was spread to this queue; lost unless it is ready.
    void receive(const ReceivedFrame& frame);
    void set_offloads(FrameOffloads offloads) { receiver_.set_offloads(offloads); }
    [[nodiscard]] FrameOffloads offloads() const { return receiver_.offloads(); }
    // WQ_FATAL: its completion queue is dead.
    void lose_completions();

  private:
    Grant open_receive(SrqNumber srq, const Segment& segment) override;
    CopyOutcome place(SrqNumber srq, const Payload& from, std::span<const MemorySpan> spans,
                      std::uint64_t offset) override;
    bool take_receive(SrqNumber srq, RecvWqe& wqe, std::span<Segment> segments,
                      std::uint32_t& index) override;
    void delivered(MessageKind kind, std::uint64_t length) override;
    bool complete(const ReceiveCompletion& completion) override;

    void fail();
    void enter(WqState to, WqTrigger trigger);
    void flush();
    [[nodiscard]] WorkQueueRing& head() const {
        return *reinterpret_cast<WorkQueueRing*>(ring_.base);
    }

    DeviceContext& context_;
    ProtectionDomain& pd_;
    CompletionQueue& cq_;
    RingMemory ring_;
    WorkQueueShape shape_;
    std::uint32_t number_;
    WqState state_ = WqState::kReset;
    std::uint32_t uses_ = 0;
    std::uint32_t taken_ = 0;
    FrameReceiver receiver_;
};

// Work queues by the lowest bits of a hash; a power of two of them.
struct IndirectionTable {
    std::vector<ReceiveWorkQueue*> queues;
    std::uint32_t uses = 0;  // queue pairs that spread by it
};

}  // namespace simverbs
