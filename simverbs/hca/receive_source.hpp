// Where a queue pair takes its receives from: its own ring, a shared receive queue (IBA 10.2.9),
// or, for an XRC target, the shared receive queue that each request names (IBA A14).
//
// The choice is made with the queue pair and holds for its life. Nothing of a request is kept here:
// whoever takes a receive, opens a key or completes passes the number that the request named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "simverbs/hca/shared_receive_queue.hpp"
#include "simverbs/transport/responder.hpp"
#include "simverbs/transport/work_queue.hpp"
#include "simverbs/wire/packet.hpp"

namespace simverbs {

class Hca;
struct QueuePairParts;

// The receive half of a queue pair's rings.
struct ReceiveRing {
    const QueuePairRings* head = nullptr;
    const std::byte* slots = nullptr;
    WorkQueueShape shape;
    std::uint32_t taken = 0;

    bool take(RecvWqe& wqe, std::span<Segment> segments, std::uint32_t& index);
    // Posted and not taken, as much as the ring can be believed.
    [[nodiscard]] std::uint32_t waiting() const;
};

// The shared receive queues of a domain, of which each request names one.
struct QueuesOfDomain {
    Hca* hca;
    OpenedXrcDomain* opened;
};

class ReceiveSource {
  public:
    ReceiveSource(Hca& hca, const QueuePairParts& parts);

    // The choice: one of these three is not nullptr.
    [[nodiscard]] ReceiveRing* own_ring() { return std::get_if<ReceiveRing>(&from_); }
    [[nodiscard]] const ReceiveRing* own_ring() const { return std::get_if<ReceiveRing>(&from_); }
    [[nodiscard]] SharedReceiveQueue* shared_queue() const {
        const auto* const queue = std::get_if<SharedReceiveQueue*>(&from_);
        return queue == nullptr ? nullptr : *queue;
    }
    // Requests name shared receive queues of this domain, as the owner of the target opened it.
    [[nodiscard]] OpenedXrcDomain* xrc_domain() const {
        const auto* const queues = std::get_if<QueuesOfDomain>(&from_);
        return queues == nullptr ? nullptr : queues->opened;
    }

    // The shared receive queue that a request to an XRC target names; nullptr for one that does not
    // exist or is of another domain, and on every other queue pair.
    [[nodiscard]] SharedReceiveQueue* named_queue(SrqNumber named) const {
        const auto* const queues = std::get_if<QueuesOfDomain>(&from_);
        return queues == nullptr ? nullptr : find_named(*queues, named);
    }
    // The shared receive queue that serves a request; nullptr where the ring does.
    [[nodiscard]] SharedReceiveQueue* queue_for(SrqNumber named) const {
        SharedReceiveQueue* const queue = shared_queue();
        return queue != nullptr ? queue : named_queue(named);
    }
    // Oldest first; false when there is none.
    bool take(SrqNumber named, RecvWqe& wqe, std::span<Segment> segments, std::uint32_t& index);
    [[nodiscard]] std::uint32_t waiting(SrqNumber named) const;

    [[nodiscard]] ReceiveProperties properties() const;
    // Begins with the first receive again.
    void reset();
    // The rings of the queue pair lie elsewhere from now on.
    void move_ring(const RingMemory& ring, const WorkQueueShape& send,
                   const WorkQueueShape& receive);
    // Another context owns the XRC target from now on.
    void move_domain(OpenedXrcDomain& opened) { std::get<QueuesOfDomain>(from_).opened = &opened; }

  private:
    static SharedReceiveQueue* find_named(const QueuesOfDomain& queues, SrqNumber named);

    std::variant<ReceiveRing, SharedReceiveQueue*, QueuesOfDomain> from_;
};

}  // namespace simverbs
