// The send work requests that the device has fetched and not yet completed, in order, with the
// PSNs that each takes.
//
// Requests are addressed by a free-running index: that of their slot in the send queue, where the
// device adds none of its own; otherwise `slot` says which slot it was. Storage comes in chunks
// that never move: a packet on the wire refers to the spans and inline bytes in here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/psn.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/transport/queue_effects.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

constexpr bool has_flag(const SendWqe& wqe, SendFlag flag) {
    return SendFlags::from_bits(wqe.flags).contains(flag);
}

// A fetched send work request.
struct SendRequest {
    SendWqe wqe;
    const WrOpcodeProperties* opcode = nullptr;  // null when the opcode is not known
    std::uint64_t length = 0;                    // bytes of the message
    std::uint32_t packets = 1;                   // PSNs that it takes
    std::uint32_t responses = 0;                 // of a READ or atomic, in order
    Psn first_psn{0};
    std::uint32_t span_count = 0;
    WcStatus failure = WcStatus::kSuccess;  // found before a packet was sent
    FaultCause cause = FaultCause::kSuccess;
    std::uint64_t key_generation = 0;  // at which the spans were granted
    std::uint32_t slot = 0;            // of the send queue that it came from
    bool of_device = false;            // the device's own; from no slot
    bool started = false;              // its first packet has been on the wire; local: carried out
    bool acknowledged = false;         // nothing more is expected from the responder
    bool retransmitted = false;        // copies of its packets may still be about

    [[nodiscard]] Psn last_psn() const { return first_psn + (packets - 1); }
    [[nodiscard]] Psn end_psn() const { return first_psn + packets; }
    [[nodiscard]] bool expects_response() const {
        return opcode != nullptr && opcode->occupies_initiator;
    }
    // The device carries it out by itself, without a packet or a PSN.
    [[nodiscard]] bool is_local() const {
        return opcode != nullptr && opcode->message == MessageKind::kNone;
    }
    // The PSN that would have to be sent again if nothing more came.
    [[nodiscard]] Psn next_response_psn() const { return first_psn + responses; }
};

class SendWindow {
  public:
    explicit SendWindow(const WorkQueueShape& shape);

    // First index not completed, not fetched, and not posted; in this order.
    [[nodiscard]] std::uint32_t head() const { return head_; }
    [[nodiscard]] std::uint32_t fetched() const { return fetched_; }
    [[nodiscard]] std::uint32_t posted() const {
        return fetched_ + (posted_slots_ - fetched_slots_) + waiting_count_;
    }
    [[nodiscard]] bool empty() const { return head_ == posted(); }
    // Something waits that there is room for.
    [[nodiscard]] bool may_fetch() const {
        return fetched_ != posted() && fetched_ - head_ < room_.slots;
    }
    // First slot of the send queue whose request is not complete.
    [[nodiscard]] std::uint32_t first_slot() const { return done_slots_; }

    // Believes a producer index only as far as the queue is deep.
    void set_posted(std::uint32_t producer);
    // From now on the device may add requests of its own. Before anything is posted.
    void admit_device_work();
    // It goes before what was posted and not fetched.
    void add(const DeviceWork& request);

    // Brings the next posted slot in; its opcode, spans and PSNs are the requester's to fill.
    SendRequest& fetch(QueueEffects& effects);
    void pop_head();
    // Moves what was fetched; not less room than it needs, and only more or fewer requests.
    void resize(const WorkQueueShape& shape);

    // Index must be in [head, fetched).
    [[nodiscard]] SendRequest& at(std::uint32_t index) {
        return chunk(index).requests[place(index)];
    }
    // Returns the bytes behind the request in its slot: segments, or inline bytes.
    [[nodiscard]] std::span<std::byte> tail(std::uint32_t index) {
        return {chunk(index).tails.data() + place(index) * tail_bytes_, tail_bytes_};
    }
    // Room for one span a segment.
    [[nodiscard]] std::span<MemorySpan> spans(std::uint32_t index) {
        return {chunk(index).spans.data() + place(index) * spans_each_, spans_each_};
    }

  private:
    static constexpr std::uint32_t kChunkRequests = 16;
    static constexpr std::uint32_t kDeviceRoom = 64;  // requests of the device that are fetched
    struct Chunk {
        std::vector<SendRequest> requests;
        std::vector<MemorySpan> spans;
        std::vector<std::byte> tails;
    };
    // Makes the room for a request that is about to be fetched.
    SendRequest& enter(std::uint32_t index);
    [[nodiscard]] Chunk& chunk(std::uint32_t index) {
        return *chunks_[slot(index) / kChunkRequests];
    }
    [[nodiscard]] std::uint32_t slot(std::uint32_t index) const {
        return index & (room_.slots - 1);
    }
    [[nodiscard]] std::size_t place(std::uint32_t index) const {
        return slot(index) % kChunkRequests;
    }
    void set_shape(const WorkQueueShape& shape);

    WorkQueueShape shape_;  // of the send queue
    WorkQueueShape room_;   // the same, and what the device needs
    std::uint32_t tail_bytes_ = 0;
    std::uint32_t spans_each_ = 1;
    std::uint32_t head_ = 0;
    std::uint32_t fetched_ = 0;
    std::uint32_t done_slots_ = 0;
    std::uint32_t fetched_slots_ = 0;
    std::uint32_t posted_slots_ = 0;
    bool admits_device_work_ = false;
    std::uint32_t waiting_count_ = 0;
    std::vector<DeviceWork> waiting_;
    std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace simverbs
