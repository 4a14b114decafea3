// The driver's side of rings: where work requests are written and completions are read.
//
// A slot of a work queue is free again when a completion of it, or of a later request of that
// queue, has been polled (IBA 10.8.5.1); unsignaled requests therefore hold theirs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "simverbs/driver/channel.hpp"
#include "simverbs/driver/tag_handles.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/wq_transitions.hpp"
#include "simverbs/threads/spin_lock.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs::driver {

class QueuePair;
class SharedReceiveQueue;
class ReceiveWorkQueue;

// The lock of one queue; none where the application promised to use the queue from one thread at a
// time (thread domain, IBV_CREATE_CQ_ATTR_SINGLE_THREADED).
class QueueLock {
  public:
    // Before the queue is used.
    void elide() { elided_ = true; }
    void lock() {
        if (!elided_) {
            spin_.lock();
        }
    }
    void unlock() {
        if (!elided_) {
            spin_.unlock();
        }
    }

  private:
    SpinLock spin_;
    bool elided_ = false;
};

// The producer's side of one work queue. Its lock is held by whoever posts.
class WorkQueue {
  public:
    // `done`: the device's own index of slots that are free; it stays 0 where only polling frees.
    WorkQueue(std::byte* slots, const WorkQueueShape& shape, SharedIndex& producer,
              const SharedIndex* done = nullptr)
        : slots_(slots), shape_(shape), shared_producer_(&producer), done_(done) {}

    [[nodiscard]] const WorkQueueShape& shape() const { return shape_; }
    [[nodiscard]] QueueLock& lock() { return lock_; }
    // Who posts; guarded by that lock.
    [[nodiscard]] ObjectUse& use() { return use_; }
    [[nodiscard]] std::uint32_t producer() const { return producer_; }

    // nullptr when every slot is taken.
    [[nodiscard]] std::byte* free_slot() {
        if (is_full() && done_ != nullptr) {
            free_to(done_->value.load(std::memory_order_acquire));
        }
        return is_full() ? nullptr
                         : slots_ + std::size_t{producer_ & (shape_.slots - 1)} * shape_.stride;
    }
    // Returns true if the request of this index holds no slot, because it was given back or never
    // was.
    [[nodiscard]] bool is_free(std::uint32_t index) const {
        const std::uint32_t freed = freed_.load(std::memory_order_acquire);
        return index - freed >= producer_ - freed;
    }
    // The slot last given out is filled; the device may see it after publish().
    void push() { ++producer_; }
    // Takes back what was pushed since producer() was this, and not published.
    void take_back(std::uint32_t producer) { producer_ = producer; }
    // To be followed by a doorbell, which orders it before whatever the device does next.
    void publish() { shared_producer_->value.store(producer_, std::memory_order_release); }

    // Not backwards: a completion may be polled long after its slot was free.
    void free_to(std::uint32_t index) {
        if (static_cast<std::int32_t>(index - freed_.load(std::memory_order_relaxed)) > 0) {
            freed_.store(index, std::memory_order_release);
        }
    }
    // Frees a slot of a shared receive queue, whose requests complete in any order.
    void free_one() { freed_.fetch_add(1, std::memory_order_acq_rel); }
    // The device has copied what it knew, `known` requests from index `first` on, to new slots; the
    // rest follows here. With the lock held.
    void move_to(std::byte* slots, const WorkQueueShape& shape, SharedIndex& producer,
                 std::uint32_t first, std::uint32_t known, const SharedIndex* done = nullptr);
    // After the device forgot everything.
    void reset() {
        producer_ = 0;
        freed_.store(0, std::memory_order_release);
    }

  private:
    [[nodiscard]] bool is_full() const {
        return producer_ - freed_.load(std::memory_order_acquire) >= shape_.limit;
    }

    std::byte* slots_;
    WorkQueueShape shape_;
    SharedIndex* shared_producer_;
    const SharedIndex* done_;
    QueueLock lock_;
    ObjectUse use_;
    std::uint32_t producer_ = 0;
    std::atomic<std::uint32_t> freed_{0};
};

// The consumer's side of a completion ring.
class CompletionQueue {
  public:
    // `device`: its place in Channel::devices(). `number`: the device's, for messages.
    CompletionQueue(Channel& channel, std::size_t device, std::uint32_t number, std::byte* ring,
                    std::uint64_t bytes, std::uint32_t entries);
    ~CompletionQueue();
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    static constexpr std::uint32_t kNoLimit = UINT32_MAX;

    [[nodiscard]] std::uint32_t entries() const { return entries_; }
    [[nodiscard]] std::uint32_t number() const { return number_; }

    // Calls take(const Cqe&) for up to `most` entries; how many there were. Holds the queue's lock,
    // takes no other.
    template <class F>
    int poll(int most, F&& take) {
        const std::lock_guard guard(lock_);
        const int found = consume(most, take);
        note_use(found > 0 ? Use::kTake : Use::kLook);
        return found;
    }
    // The same; an empty queue lets time move once first.
    template <class F>
    int poll_or_step(int most, F&& take) {
        const std::uint64_t seen = channel_.deliveries();
        const int found = poll(most, take);
        if (found != 0 || most <= 0) {
            return found;
        }
        let_time_move(seen);
        return poll(most, take);
    }

    // Counts the entries that a poll would return, `most` at most; an empty queue lets time move
    // once first where poll_or_step() does.
    [[nodiscard]] int count(int most, bool steps);

    // The iterator of extended polling. Where first_or_step() finds an entry, the queue's lock is
    // held from there to end(), and the entry stays where it is until next() or end(). An empty
    // queue lets time move once first; next() does not.
    // A fault can have next() return no more than `most` entries, with the first.
    const Cqe* first_or_step(std::uint32_t most = kNoLimit);
    const Cqe* next();
    void end();

    // Returns true if entries wait in it.
    bool arm(CqArm arm);
    // Before the queue is used.
    void use_from_one_thread() { lock_.elide(); }

    // Entries of this queue pair that were not polled yet.
    [[nodiscard]] std::size_t unread(std::uint32_t qpn);
    void add(QueuePair& qp);
    // Forgets the queue pair; `purges`: and takes its entries out.
    void remove(const QueuePair& qp, bool purges);
    // Takes them out (RESET).
    void purge(std::uint32_t qpn);
    // Takes those of receives of this queue out.
    void purge(const SharedReceiveQueue& queue);
    // Leaves them there, of slots that are all free by now (RESET).
    void free_nothing_of(std::uint32_t qpn);
    void add(ReceiveWorkQueue& queue);
    void remove(const ReceiveWorkQueue& queue);
    void purge(const ReceiveWorkQueue& queue);
    // Completions of a shared receive queue may stand here: each counts for it.
    void add(SharedReceiveQueue& queue);
    void remove(const SharedReceiveQueue& queue);
    void replace_ring(std::byte* ring, const ResizeCqReply& reply);

  private:
    template <class F>
    int consume(int most, F& take) {
        CompletionRing& head = this->head();
        int found = 0;
        while (found < most) {
            const Cqe* entry = look();
            if (entry == nullptr) {
                break;
            }
            take(*entry);
            ++consumer_;
            ++found;
        }
        if (found > 0) {
            head.consumer.value.store(consumer_, std::memory_order_release);
        }
        return found;
    }
    // The oldest entry, nullptr where there is none.
    const Cqe* look() {
        const std::uint32_t end = head().producer.value.load(std::memory_order_seq_cst);
        if (consumer_ == end) {
            return nullptr;
        }
        if (end - consumer_ > entries_) {
            consumer_ = end - entries_;  // of a queue that ignores overruns: the oldest are lost
        }
        const Cqe& entry = slots()[consumer_ & mask_];
        settle(entry);
        return &entry;
    }
    const Cqe* first(std::uint32_t most);
    void note_use(Use use) { channel_.note_use(use_, use, "the completion queue", number_); }
    void let_time_move(std::uint64_t seen) {
        channel_.empty_poll(seen, &head());
        channel_.await_running(device_);
    }
    void settle(const Cqe& entry);
    template <class F>
    void purge_locked(F&& goes);
    [[nodiscard]] QueuePair* find(std::uint32_t qpn);
    [[nodiscard]] CompletionRing& head() const { return *reinterpret_cast<CompletionRing*>(ring_); }
    [[nodiscard]] Cqe* slots() const {
        return reinterpret_cast<Cqe*>(ring_ + sizeof(CompletionRing));
    }

    Channel& channel_;
    std::size_t device_;
    std::uint32_t number_;
    std::byte* ring_;
    std::uint64_t bytes_;
    std::uint32_t entries_;
    std::uint32_t mask_;
    std::uint32_t consumer_ = 0;
    bool at_entry_ = false;          // the iterator stands at an entry
    std::uint32_t left_ = kNoLimit;  // entries of the iterator, unless it has no limit
    QueueLock lock_;
    ObjectUse use_;
    std::vector<QueuePair*> users_;  // by number; twice where both its queues complete here
    QueuePair* last_ = nullptr;
    struct SharedUser {
        SharedReceiveQueue* queue;
        std::uint32_t uses;
    };
    std::vector<SharedUser> shared_users_;        // rarely more than one
    std::vector<ReceiveWorkQueue*> work_queues_;  // likewise
};

// The tags of a shared receive queue: the operations on them, and their handles.
struct TagOperations {
    WorkQueue operations;
    TagHandles handles;
};

// The driver's side of a shared receive queue.
class SharedReceiveQueue {
  public:
    SharedReceiveQueue(Channel& channel, std::uint32_t context, const CreateSrqReply& reply,
                       std::byte* ring);
    ~SharedReceiveQueue();
    SharedReceiveQueue(const SharedReceiveQueue&) = delete;
    SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] WorkQueue& receives() { return receives_; }
    // Makes what was pushed visible; with the queue's lock held.
    void publish() {
        receives_.publish();
        channel_.note_use(receives_.use(), Use::kTake, "the shared receive queue", number_);
    }
    void replace_ring(std::byte* ring, const ModifySrqReply& reply);
    // nullptr where it matches none.
    [[nodiscard]] TagOperations* tags() { return tags_.get(); }
    // Makes the operations that were pushed visible and tells the device; with their lock held.
    void ring_operations();
    // A completion of its tags was polled.
    void settle_tag(const Cqe& entry);

  private:
    Channel& channel_;
    std::uint32_t context_;
    std::uint32_t number_;
    std::byte* ring_;
    std::uint64_t ring_bytes_;
    WorkQueue receives_;
    std::unique_ptr<TagOperations> tags_;
};

// The driver's side of a work queue of receives.
class ReceiveWorkQueue {
  public:
    ReceiveWorkQueue(Channel& channel, std::uint32_t context, const CreateWqReply& reply,
                     std::byte* ring, CompletionQueue& cq);
    ~ReceiveWorkQueue();
    ReceiveWorkQueue(const ReceiveWorkQueue&) = delete;
    ReceiveWorkQueue& operator=(const ReceiveWorkQueue&) = delete;

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] WorkQueue& receives() { return receives_; }
    // As the device last said.
    [[nodiscard]] WqState state() const {
        return static_cast<WqState>(head_->state.value.load(std::memory_order_seq_cst));
    }
    // Makes what was pushed visible and tells the device; with the queue's lock held.
    void ring();
    // After a modify to RESET.
    void forget_work();

  private:
    Channel& channel_;
    std::uint32_t context_;
    std::uint32_t number_;
    WorkQueueRing* head_;
    std::uint64_t ring_bytes_;
    CompletionQueue& cq_;
    WorkQueue receives_;
};

// The queues that a queue pair completes to and takes receives from; nullptr where its service has
// none.
struct QueuePairQueues {
    CompletionQueue* send_cq = nullptr;
    CompletionQueue* receive_cq = nullptr;
    SharedReceiveQueue* shared = nullptr;
};

// The driver's side of a queue pair.
class QueuePair {
  public:
    // `ring` is nullptr for one that somebody else made: it has no queues here.
    QueuePair(Channel& channel, std::uint32_t context, const CreateQpReply& reply, std::byte* ring,
              const QueuePairQueues& queues);
    ~QueuePair();
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    [[nodiscard]] std::uint32_t qpn() const { return qpn_; }
    [[nodiscard]] WorkQueue& send() { return send_; }
    [[nodiscard]] const WorkQueue& send() const { return send_; }
    [[nodiscard]] WorkQueue& receive() { return receive_; }
    [[nodiscard]] const WorkQueue& receive() const { return receive_; }
    // As the device last said.
    [[nodiscard]] QpState state() const {
        return static_cast<QpState>(rings_->state.value.load(std::memory_order_seq_cst));
    }

    // Makes what was pushed visible and tells the device; with the queue's lock held.
    void ring_send();
    void ring_receive();
    // Before a modify to ERR, which flushes also what was pushed without a doorbell.
    void publish_sends();
    // Completions of it that were not polled yet.
    [[nodiscard]] std::size_t unread() const;
    // Its completions stay where they are when it is reset or goes.
    void leave_completions() { leaves_completions_ = true; }
    // Before the queues are used.
    void use_from_one_thread() {
        send_.lock().elide();
        receive_.lock().elide();
    }
    // After a modify with CAP.
    void replace_ring(std::byte* ring, const ModifyQpReply& reply);
    // After a modify to RESET: the device has forgotten all, and so do the queues.
    void forget_work();

  private:
    Channel& channel_;
    std::uint32_t context_;
    std::uint32_t qpn_;
    // The largest ring that a personality grants has some 2 GiB. 0: somebody else made it, and
    // `rings_` is its own.
    std::uint32_t ring_bytes_;
    bool leaves_completions_ = false;
    QueuePairRings* rings_;
    WorkQueue send_;
    WorkQueue receive_;
    QueuePairQueues queues_;
};

}  // namespace simverbs::driver
