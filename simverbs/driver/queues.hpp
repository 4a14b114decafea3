// The driver's side of rings: where work requests are written and completions are read.
//
// A slot of a work queue is free again when a completion of it, or of a later request of that
// queue, has been polled (IBA 10.8.5.1); unsignaled requests therefore hold theirs.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "simverbs/driver/channel.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/transport/work_queue.hpp"
#include "simverbs/world/spin_lock.hpp"

namespace simverbs::driver {

class QueuePair;

// The producer's side of one work queue. Its lock is held by whoever posts.
class WorkQueue {
  public:
    WorkQueue(std::byte* slots, const WorkQueueShape& shape, SharedIndex& producer)
        : slots_(slots), shape_(shape), shared_producer_(producer) {}

    [[nodiscard]] const WorkQueueShape& shape() const { return shape_; }
    [[nodiscard]] SpinLock& lock() { return lock_; }
    [[nodiscard]] std::uint32_t producer() const { return producer_; }

    // nullptr when every slot is taken.
    [[nodiscard]] std::byte* free_slot() const {
        const std::uint32_t taken = producer_ - freed_.load(std::memory_order_acquire);
        return taken >= shape_.limit
                   ? nullptr
                   : slots_ + std::size_t{producer_ & (shape_.slots - 1)} * shape_.stride;
    }
    // The slot last given out is filled; the device may see it after publish().
    void push() { ++producer_; }
    void publish() { shared_producer_.value.store(producer_, std::memory_order_seq_cst); }

    void free_to(std::uint32_t index) { freed_.store(index, std::memory_order_release); }
    // After the device forgot everything.
    void reset() {
        producer_ = 0;
        freed_.store(0, std::memory_order_release);
    }

  private:
    std::byte* slots_;
    WorkQueueShape shape_;
    SharedIndex& shared_producer_;
    SpinLock lock_;
    std::uint32_t producer_ = 0;
    std::atomic<std::uint32_t> freed_{0};
};

// The consumer's side of a completion ring.
class CompletionQueue {
  public:
    CompletionQueue(Channel& channel, std::byte* ring, std::uint64_t bytes, std::uint32_t entries);
    ~CompletionQueue();
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    [[nodiscard]] std::uint32_t entries() const { return entries_; }

    // Calls take(const Cqe&) for up to `most` entries; how many there were. Holds the queue's lock,
    // takes no other.
    template <class F>
    int poll(int most, F&& take) {
        const std::lock_guard guard(lock_);
        return consume(most, take);
    }
    // The same; an empty queue lets time move once first.
    template <class F>
    int poll_or_step(int most, F&& take) {
        const std::uint64_t seen = channel_.deliveries();
        const int found = poll(most, take);
        if (found != 0 || most <= 0) {
            return found;
        }
        channel_.empty_poll(seen);
        return poll(most, take);
    }

    void arm(CqArm arm);

    void add(QueuePair& qp);
    // Takes the queue pair's entries out, and forgets it.
    void remove(const QueuePair& qp);
    // Takes them out (RESET).
    void purge(std::uint32_t qpn);
    void replace_ring(std::byte* ring, const ResizeCqReply& reply);

  private:
    template <class F>
    int consume(int most, F& take) {
        CompletionRing& head = this->head();
        int found = 0;
        while (found < most) {
            if (consumer_ == head.producer.value.load(std::memory_order_seq_cst)) {
                break;
            }
            const Cqe& entry = slots()[consumer_ & mask_];
            settle(entry);
            take(entry);
            ++consumer_;
            ++found;
        }
        if (found > 0) {
            head.consumer.value.store(consumer_, std::memory_order_release);
        }
        return found;
    }
    void settle(const Cqe& entry);
    void purge_locked(std::uint32_t qpn);
    [[nodiscard]] QueuePair* find(std::uint32_t qpn);
    [[nodiscard]] CompletionRing& head() const { return *reinterpret_cast<CompletionRing*>(ring_); }
    [[nodiscard]] Cqe* slots() const {
        return reinterpret_cast<Cqe*>(ring_ + sizeof(CompletionRing));
    }

    Channel& channel_;
    std::byte* ring_;
    std::uint64_t bytes_;
    std::uint32_t entries_;
    std::uint32_t mask_;
    std::uint32_t consumer_ = 0;
    SpinLock lock_;
    std::vector<QueuePair*> users_;  // by number; twice where both its queues complete here
    QueuePair* last_ = nullptr;
};

// The driver's side of a queue pair.
class QueuePair {
  public:
    QueuePair(Channel& channel, std::uint32_t context, const CreateQpReply& reply, std::byte* ring,
              CompletionQueue& send_cq, CompletionQueue& receive_cq);
    ~QueuePair();
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    [[nodiscard]] std::uint32_t qpn() const { return qpn_; }
    [[nodiscard]] WorkQueue& send() { return send_; }
    [[nodiscard]] WorkQueue& receive() { return receive_; }
    // As the device last said.
    [[nodiscard]] QpState state() const {
        return static_cast<QpState>(rings_->state.value.load(std::memory_order_seq_cst));
    }

    // Makes what was pushed visible and tells the device; with the queue's lock held.
    void ring_send();
    void ring_receive();
    // After a modify to RESET: the device has forgotten all, and so do the queues.
    void forget_work();

  private:
    Channel& channel_;
    std::uint32_t context_;
    std::uint32_t qpn_;
    QueuePairRings* rings_;
    std::uint64_t ring_bytes_;
    WorkQueue send_;
    WorkQueue receive_;
    CompletionQueue& send_cq_;
    CompletionQueue& receive_cq_;
};

}  // namespace simverbs::driver
