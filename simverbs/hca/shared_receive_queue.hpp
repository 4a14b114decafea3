// A shared receive queue: receives that any of its queue pairs takes, in the order of posting
// (IBA 10.2.9), and the XRC domain that some belong to (IBA A14).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "simverbs/hca/client.hpp"
#include "simverbs/hca/command.hpp"
#include "simverbs/hca/memory_region.hpp"
#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/srq_transitions.hpp"
#include "simverbs/transport/tag_list.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

class CompletionQueue;
class DeviceContext;
class QueuePair;

// A file as the kernel knows it: device and inode.
using XrcFile = std::pair<std::uint64_t, std::uint64_t>;

// The domain that all who name the same file share.
struct XrcDomain {};

// A domain as one context has opened it.
struct OpenedXrcDomain {
    std::shared_ptr<XrcDomain> domain;
    std::uint32_t uses = 0;  // shared receive queues and queue pairs of this context in it
};

struct SharedReceiveQueueParts {
    ProtectionDomain& pd;
    OpenedXrcDomain* xrcd;  // XRC only
    CompletionQueue* cq;    // XRC and tag matching only
    RingMemory ring;
    WorkQueueShape shape;
    WorkQueueShape operations;  // on its tags
    std::uint32_t tags;         // 0: it has none
    std::uint32_t number;
    std::uint32_t limit;
};

class SharedReceiveQueue {
  public:
    SharedReceiveQueue(DeviceContext& context, const SharedReceiveQueueParts& parts);
    ~SharedReceiveQueue();
    SharedReceiveQueue(const SharedReceiveQueue&) = delete;
    SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

    // Getters.
    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] DeviceContext& context() const { return context_; }
    [[nodiscard]] ProtectionDomain& pd() const { return pd_; }
    [[nodiscard]] const XrcDomain* domain() const {
        return xrcd_ == nullptr ? nullptr : xrcd_->domain.get();
    }
    [[nodiscard]] const OpenedXrcDomain* opened_domain() const { return xrcd_; }
    [[nodiscard]] CompletionQueue* cq() const { return cq_; }
    [[nodiscard]] std::uint32_t max_segments() const { return shape_.max_segments; }
    [[nodiscard]] QuerySrqReply query() const;
    // Posted and not taken.
    [[nodiscard]] std::uint32_t waiting() const;
    [[nodiscard]] bool in_use() const { return !users_.empty(); }
    // nullptr where it matches none.
    [[nodiscard]] TagList* tags() const { return matching_ ? &matching_->tags : nullptr; }

    // Takes the oldest receive; false when there is none. Segments beyond `segments` are not
    // copied.
    bool take(RecvWqe& wqe, std::span<Segment> segments, std::uint32_t& index);
    // SRQ_LIMIT_REACHED once, when fewer than this are waiting; 0 disarms.
    void set_limit(std::uint32_t limit);
    // Copies the receives that wait to a new ring, from index 0; returns where they began in the
    // old one, which is kept: a driver may still be looking at it.
    std::uint32_t replace_ring(RingMemory ring, const WorkQueueShape& shape);
    // The device can no longer read the ring: SRQ_ERR, and its queue pairs fail with QP_FATAL.
    void fail();

    // Operations on its tags exist up to `producer`: carries them out.
    void posted_operations(std::uint32_t producer);

    void add_user(QueuePair& qp) { users_.push_back(&qp); }
    void remove_user(const QueuePair& qp) { std::erase(users_, &qp); }
    [[nodiscard]] const std::vector<QueuePair*>& users() const { return users_; }

  private:
    [[nodiscard]] SharedReceiveRing& head() const {
        return *reinterpret_cast<SharedReceiveRing*>(ring_.base);
    }
    [[nodiscard]] std::byte* slot(std::uint32_t index) const {
        return ring_.base + sizeof(SharedReceiveRing) +
               std::size_t{index & (shape_.slots - 1)} * shape_.stride;
    }
    // Its tags, and the operations on them.
    struct Matching {
        TagList tags;
        WorkQueueShape shape;
        std::uint32_t done = 0;  // operations
    };
    [[nodiscard]] const std::byte* operation_slot(std::uint32_t index) const;
    void carry_out(const TagOperation& operation, std::uint32_t index);
    void complete(const TagOperation& operation, std::uint32_t index, FaultCause cause);

    void check_limit();
    void trace_move(SrqTrigger trigger) const;

    DeviceContext& context_;
    ProtectionDomain& pd_;
    OpenedXrcDomain* xrcd_;
    CompletionQueue* cq_;
    RingMemory ring_;
    RingMemory retired_;
    WorkQueueShape shape_;
    std::uint32_t number_;
    std::uint32_t limit_;
    std::uint32_t taken_ = 0;
    bool dead_ = false;
    std::unique_ptr<Matching> matching_;
    std::vector<QueuePair*> users_;  // in the order of their making
};

}  // namespace simverbs
