#include "simverbs/driver/queues.hpp"

#include <algorithm>
#include <mutex>

#include "simverbs/model/opcodes.hpp"

namespace simverbs::driver {
namespace {

WorkQueueShape receive_shape(const QpCapacity& capacity) {
    return receive_queue_shape(capacity.receive_requests, capacity.receive_segments);
}

SharedReceiveRing& head_of(std::byte* ring) {
    return *reinterpret_cast<SharedReceiveRing*>(ring);
}

}  // namespace

void WorkQueue::move_to(std::byte* slots, const WorkQueueShape& shape, SharedIndex& producer,
                        std::uint32_t first, std::uint32_t known, const SharedIndex* done) {
    for (std::uint32_t index = first + known; index != producer_; ++index) {
        std::copy_n(slots_ + std::size_t{index & (shape_.slots - 1)} * shape_.stride, shape_.stride,
                    slots + std::size_t{(index - first) & (shape.slots - 1)} * shape.stride);
    }
    slots_ = slots;
    shape_ = shape;
    shared_producer_ = &producer;
    done_ = done;
    producer_ -= first;
    freed_.fetch_sub(first, std::memory_order_acq_rel);
    publish();
}

SharedReceiveQueue::SharedReceiveQueue(Channel& channel, std::uint32_t context,
                                       const CreateSrqReply& reply, std::byte* ring)
    : channel_(channel),
      context_(context),
      number_(reply.handle),
      ring_(ring),
      ring_bytes_(reply.ring.bytes),
      receives_(ring + sizeof(SharedReceiveRing),
                receive_queue_shape(reply.requests, reply.segments), head_of(ring).producer) {
    if (reply.tags == 0) {
        return;
    }
    std::byte* base = ring + tag_operation_ring_at(receives_.shape());
    tags_.reset(
        new TagOperations{WorkQueue(base + sizeof(TagOperationRing),
                                    tag_operation_shape(reply.operations, reply.tag_segments),
                                    reinterpret_cast<TagOperationRing*>(base)->producer),
                          TagHandles(reply.tags)});
}

void SharedReceiveQueue::ring_operations() {
    WorkQueue& operations = tags_->operations;
    operations.publish();
    channel_.note_use(operations.use(), Use::kTake, "the tags of shared receive queue", number_);
    channel_.ring({.context = context_,
                   .qpn = number_,
                   .producer = operations.producer(),
                   .queue = DoorbellQueue::kTag});
}

void SharedReceiveQueue::settle_tag(const Cqe& entry) {
    const auto opcode = static_cast<WcOpcode>(entry.opcode);
    if (tags_ == nullptr) {
        return;
    }
    const std::lock_guard guard(tags_->operations.lock());
    if (opcode != WcOpcode::kTmRecv) {
        tags_->operations.free_to(entry.flow_tag);
    }
    tags_->handles.settle(entry);
}

SharedReceiveQueue::~SharedReceiveQueue() {
    channel_.unmap_ring(ring_, ring_bytes_);
}

void SharedReceiveQueue::replace_ring(std::byte* ring, const ModifySrqReply& reply) {
    const std::lock_guard guard(receives_.lock());
    SharedIndex& producer = head_of(ring).producer;
    receives_.move_to(ring + sizeof(SharedReceiveRing),
                      receive_queue_shape(reply.requests, receives_.shape().max_segments), producer,
                      reply.first, producer.value.load(std::memory_order_acquire));
    channel_.unmap_ring(ring_, ring_bytes_);
    ring_ = ring;
    ring_bytes_ = reply.ring.bytes;
}

CompletionQueue::CompletionQueue(Channel& channel, std::size_t device, std::uint32_t number,
                                 std::byte* ring, std::uint64_t bytes, std::uint32_t entries)
    : channel_(channel),
      device_(device),
      number_(number),
      ring_(ring),
      bytes_(bytes),
      entries_(entries),
      mask_(slots_for(entries) - 1) {}

CompletionQueue::~CompletionQueue() {
    channel_.unmap_ring(ring_, bytes_);
}

int CompletionQueue::count(int most, bool steps) {
    const auto count_now = [this, most] {
        const std::lock_guard guard(lock_);
        const std::uint32_t there =
            head().producer.value.load(std::memory_order_seq_cst) - consumer_;
        const std::uint32_t found = std::min(there, entries_);
        note_use(found > 0 ? Use::kTake : Use::kLook);
        return static_cast<int>(std::min(found, static_cast<std::uint32_t>(std::max(most, 0))));
    };
    const std::uint64_t seen = channel_.deliveries();
    if (const int found = count_now(); found > 0 || most <= 0 || !steps) {
        return found;
    }
    let_time_move(seen);
    return count_now();
}

const Cqe* CompletionQueue::first(std::uint32_t most) {
    lock_.lock();
    left_ = most;
    const Cqe* entry = look();
    at_entry_ = entry != nullptr;
    note_use(at_entry_ ? Use::kTake : Use::kLook);
    if (!at_entry_) {
        lock_.unlock();
    }
    return entry;
}

const Cqe* CompletionQueue::first_or_step(std::uint32_t most) {
    const std::uint64_t seen = channel_.deliveries();
    if (const Cqe* entry = first(most); entry != nullptr) {
        return entry;
    }
    let_time_move(seen);
    return first(most);
}

const Cqe* CompletionQueue::next() {
    if (at_entry_) {
        ++consumer_;
    }
    const bool has_ended = left_ != kNoLimit && --left_ == 0;
    const Cqe* entry = has_ended ? nullptr : look();
    at_entry_ = entry != nullptr;
    return entry;
}

void CompletionQueue::end() {
    if (at_entry_) {
        ++consumer_;
        at_entry_ = false;
    }
    head().consumer.value.store(consumer_, std::memory_order_release);
    lock_.unlock();
}

bool CompletionQueue::arm(CqArm arm) {
    const std::lock_guard guard(lock_);
    std::atomic<std::uint32_t>& shared = head().arm.value;
    // "Next" includes "solicited": a weaker request never replaces a stronger one (IBA 11.4.2.2).
    if (shared.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(CqArm::kNext)) {
        // With the load in consume(): see hca's CompletionQueue::notify.
        shared.store(static_cast<std::uint32_t>(arm), std::memory_order_seq_cst);
    }
    return consumer_ != head().producer.value.load(std::memory_order_seq_cst);
}

void CompletionQueue::add(QueuePair& qp) {
    const std::lock_guard guard(lock_);
    const auto place = std::lower_bound(
        users_.begin(), users_.end(), qp.qpn(),
        [](const QueuePair* user, std::uint32_t qpn) { return user->qpn() < qpn; });
    users_.insert(place, &qp);
}

// The entries that stay move up to the producer's end, so that the device, which only ever adds
// behind it, is not disturbed.
template <class F>
void CompletionQueue::purge_locked(F&& goes) {
    const std::uint32_t end = head().producer.value.load(std::memory_order_acquire);
    std::uint32_t keep = end;
    for (std::uint32_t at = end; at != consumer_; --at) {
        const Cqe& entry = slots()[(at - 1) & mask_];
        if (!goes(entry)) {
            --keep;
            slots()[keep & mask_] = entry;
        } else if (entry.queue == CompletedQueue::kShared || entry.queue == CompletedQueue::kTag) {
            settle(entry);
        }
    }
    consumer_ = keep;
    head().consumer.value.store(consumer_, std::memory_order_release);
}

std::size_t CompletionQueue::unread(std::uint32_t qpn) {
    const std::lock_guard guard(lock_);
    const std::uint32_t end = head().producer.value.load(std::memory_order_acquire);
    std::size_t count = 0;
    for (std::uint32_t at = consumer_; at != end; ++at) {
        const Cqe& entry = slots()[at & mask_];
        count += entry.qpn == qpn && entry.queue != CompletedQueue::kWork ? 1 : 0;
    }
    return count;
}

void CompletionQueue::purge(std::uint32_t qpn) {
    const std::lock_guard guard(lock_);
    purge_locked([qpn](const Cqe& entry) {
        return entry.qpn == qpn && entry.queue != CompletedQueue::kWork;
    });
}

void CompletionQueue::purge(const ReceiveWorkQueue& queue) {
    const std::lock_guard guard(lock_);
    purge_locked([&queue](const Cqe& entry) {
        return entry.qpn == queue.number() && entry.queue == CompletedQueue::kWork;
    });
}

void CompletionQueue::purge(const SharedReceiveQueue& queue) {
    const std::lock_guard guard(lock_);
    purge_locked([&queue](const Cqe& entry) {
        return (entry.queue == CompletedQueue::kShared && entry.freed_to == queue.number()) ||
               (entry.queue == CompletedQueue::kTag && tag_queue_of(entry) == queue.number());
    });
}

void CompletionQueue::free_nothing_of(std::uint32_t qpn) {
    const std::lock_guard guard(lock_);
    const std::uint32_t end = head().producer.value.load(std::memory_order_acquire);
    for (std::uint32_t at = consumer_; at != end; ++at) {
        Cqe& entry = slots()[at & mask_];
        if (entry.qpn == qpn &&
            (entry.queue == CompletedQueue::kSend || entry.queue == CompletedQueue::kReceive)) {
            entry.freed_to = 0;
        }
    }
}

void CompletionQueue::add(ReceiveWorkQueue& queue) {
    const std::lock_guard guard(lock_);
    work_queues_.push_back(&queue);
}

void CompletionQueue::remove(const ReceiveWorkQueue& queue) {
    const std::lock_guard guard(lock_);
    std::erase(work_queues_, &queue);
}

void CompletionQueue::remove(const QueuePair& qp, bool purges) {
    if (purges) {
        purge(qp.qpn());
    }
    const std::lock_guard guard(lock_);
    users_.erase(std::find(users_.begin(), users_.end(), &qp));
    last_ = nullptr;
}

void CompletionQueue::add(SharedReceiveQueue& queue) {
    const std::lock_guard guard(lock_);
    const auto user = std::ranges::find(shared_users_, &queue, &SharedUser::queue);
    if (user == shared_users_.end()) {
        shared_users_.push_back({&queue, 1});
    } else {
        ++user->uses;
    }
}

void CompletionQueue::remove(const SharedReceiveQueue& queue) {
    const std::lock_guard guard(lock_);
    const auto user = std::ranges::find(shared_users_, &queue, &SharedUser::queue);
    if (--user->uses == 0) {
        shared_users_.erase(user);
    }
}

QueuePair* CompletionQueue::find(std::uint32_t qpn) {
    if (last_ != nullptr && last_->qpn() == qpn) {
        return last_;
    }
    const auto found = std::lower_bound(
        users_.begin(), users_.end(), qpn,
        [](const QueuePair* user, std::uint32_t number) { return user->qpn() < number; });
    if (found == users_.end() || (*found)->qpn() != qpn) {
        return nullptr;
    }
    return last_ = *found;
}

void CompletionQueue::settle(const Cqe& entry) {
    if (entry.queue == CompletedQueue::kShared) {
        const auto user = std::ranges::find_if(shared_users_, [&entry](const SharedUser& shared) {
            return shared.queue->number() == entry.freed_to;
        });
        if (user != shared_users_.end()) {
            user->queue->receives().free_one();
        }
        return;
    }
    if (entry.queue == CompletedQueue::kTag) {
        const auto user = std::ranges::find_if(shared_users_, [&entry](const SharedUser& shared) {
            return shared.queue->number() == tag_queue_of(entry);
        });
        if (user != shared_users_.end()) {
            user->queue->settle_tag(entry);
        }
        return;
    }
    if (entry.queue == CompletedQueue::kWork) {
        const auto user = std::ranges::find(work_queues_, entry.qpn, &ReceiveWorkQueue::number);
        if (user != work_queues_.end()) {
            (*user)->receives().free_to(entry.freed_to);
        }
        return;
    }
    QueuePair* qp = find(entry.qpn);
    if (qp != nullptr) {
        WorkQueue& queue = entry.queue == CompletedQueue::kSend ? qp->send() : qp->receive();
        queue.free_to(entry.freed_to);
    }
}

// Entries consumed from the old ring since the device copied it counts in the new one.
void CompletionQueue::replace_ring(std::byte* ring, const ResizeCqReply& reply) {
    const std::lock_guard guard(lock_);
    channel_.unmap_ring(ring_, bytes_);
    ring_ = ring;
    bytes_ = reply.ring.bytes;
    entries_ = reply.entries;
    mask_ = slots_for(entries_) - 1;
    consumer_ -= reply.first;
    head().consumer.value.store(consumer_, std::memory_order_release);
}

ReceiveWorkQueue::ReceiveWorkQueue(Channel& channel, std::uint32_t context,
                                   const CreateWqReply& reply, std::byte* ring, CompletionQueue& cq)
    : channel_(channel),
      context_(context),
      number_(reply.handle),
      head_(reinterpret_cast<WorkQueueRing*>(ring)),
      ring_bytes_(reply.ring.bytes),
      cq_(cq),
      receives_(ring + sizeof(WorkQueueRing), receive_queue_shape(reply.requests, reply.segments),
                head_->producer) {
    cq_.add(*this);
}

ReceiveWorkQueue::~ReceiveWorkQueue() {
    cq_.purge(*this);
    cq_.remove(*this);
    channel_.unmap_ring(reinterpret_cast<std::byte*>(head_), ring_bytes_);
}

void ReceiveWorkQueue::ring() {
    receives_.publish();
    channel_.note_use(receives_.use(), Use::kTake, "the work queue", number_);
    channel_.ring({.context = context_,
                   .qpn = number_,
                   .producer = receives_.producer(),
                   .queue = DoorbellQueue::kWork});
}

void ReceiveWorkQueue::forget_work() {
    const std::lock_guard guard(receives_.lock());
    receives_.reset();
    cq_.purge(*this);
}

QueuePair::QueuePair(Channel& channel, std::uint32_t context, const CreateQpReply& reply,
                     std::byte* ring, const QueuePairQueues& queues)
    : channel_(channel),
      context_(context),
      qpn_(reply.qpn),
      ring_bytes_(ring == nullptr ? 0 : static_cast<std::uint32_t>(reply.ring.bytes)),
      rings_(ring == nullptr ? new QueuePairRings : reinterpret_cast<QueuePairRings*>(ring)),
      send_(ring + sizeof(QueuePairRings), send_shape(reply.capacity), rings_->send_producer,
            &rings_->sends_done),
      receive_(ring + sizeof(QueuePairRings) + send_shape(reply.capacity).bytes(),
               receive_shape(reply.capacity), rings_->receive_producer),
      queues_(queues) {
    if (queues_.send_cq != nullptr) {
        queues_.send_cq->add(*this);
    }
    if (queues_.receive_cq != nullptr) {
        queues_.receive_cq->add(*this);
        if (queues_.shared != nullptr) {
            queues_.receive_cq->add(*queues_.shared);
        }
    }
}

QueuePair::~QueuePair() {
    if (queues_.send_cq != nullptr) {
        queues_.send_cq->remove(*this, !leaves_completions_);
    }
    if (queues_.receive_cq != nullptr) {
        queues_.receive_cq->remove(*this, !leaves_completions_);
        if (queues_.shared != nullptr) {
            queues_.receive_cq->remove(*queues_.shared);
        }
    }
    if (ring_bytes_ == 0) {
        delete rings_;
    } else {
        channel_.unmap_ring(reinterpret_cast<std::byte*>(rings_), ring_bytes_);
    }
}

std::size_t QueuePair::unread() const {
    std::size_t count = queues_.send_cq == nullptr ? 0 : queues_.send_cq->unread(qpn_);
    if (queues_.receive_cq != nullptr && queues_.receive_cq != queues_.send_cq) {
        count += queues_.receive_cq->unread(qpn_);
    }
    return count;
}

void QueuePair::ring_send() {
    send_.publish();
    channel_.note_use(send_.use(), Use::kTake, "the send queue of queue pair", qpn_);
    channel_.ring({.context = context_,
                   .qpn = qpn_,
                   .producer = send_.producer(),
                   .queue = DoorbellQueue::kSend});
}

void QueuePair::ring_receive() {
    receive_.publish();
    channel_.note_use(receive_.use(), Use::kTake, "the receive queue of queue pair", qpn_);
    channel_.ring({.context = context_,
                   .qpn = qpn_,
                   .producer = receive_.producer(),
                   .queue = DoorbellQueue::kReceive});
}

// Requests keep their indices. Whoever posted meanwhile rang for a ring that is no more.
void QueuePair::replace_ring(std::byte* ring, const ModifyQpReply& reply) {
    const std::lock_guard send_guard(send_.lock());
    const std::lock_guard receive_guard(receive_.lock());
    auto* rings = reinterpret_cast<QueuePairRings*>(ring);
    std::byte* slots = ring + sizeof(QueuePairRings);
    const WorkQueueShape send = send_shape(reply.capacity);
    send_.move_to(slots, send, rings->send_producer, 0, reply.sends, &rings->sends_done);
    receive_.move_to(slots + send.bytes(), receive_shape(reply.capacity), rings->receive_producer,
                     0, reply.receives);
    channel_.unmap_ring(reinterpret_cast<std::byte*>(rings_), ring_bytes_);
    rings_ = rings;
    ring_bytes_ = static_cast<std::uint32_t>(reply.ring.bytes);
    if (send_.producer() != reply.sends) {
        ring_send();
    }
    if (receive_.producer() != reply.receives) {
        ring_receive();
    }
}

void QueuePair::publish_sends() {
    const std::lock_guard guard(send_.lock());
    send_.publish();
}

void QueuePair::forget_work() {
    const std::lock_guard send_guard(send_.lock());
    const std::lock_guard receive_guard(receive_.lock());
    send_.reset();
    receive_.reset();
    if (leaves_completions_) {
        for (CompletionQueue* queue : {queues_.send_cq, queues_.receive_cq}) {
            if (queue != nullptr) {
                queue->free_nothing_of(qpn_);
            }
        }
        return;
    }
    if (queues_.send_cq != nullptr) {
        queues_.send_cq->purge(qpn_);
    }
    if (queues_.receive_cq != nullptr) {
        queues_.receive_cq->purge(qpn_);
    }
}

}  // namespace simverbs::driver
