#include "simverbs/hca/completion_queue.hpp"

#include <algorithm>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/hca/receive_work_queue.hpp"

namespace simverbs {
namespace {

constexpr unsigned kHandleBits = 22;
constexpr unsigned kContextBits = 10;  // the others are the port number's

}  // namespace

fabric::EventKey CompletionQueue::timer_key(TimerPurpose purpose) const {
    const std::uint32_t context = context_.handle();
    const auto port =
        static_cast<std::uint16_t>(static_cast<std::uint32_t>(purpose) + (context >> kContextBits));
    return {fabric::EventClass::kTimer, context_.hca().node(), fabric::PortNumber(port),
            context << kHandleBits | handle_};
}

CompletionQueue::CompletionQueue(DeviceContext& context, RingMemory ring, std::uint32_t entries,
                                 CompletionChannel* channel)
    : context_(context),
      ring_(ring),
      entries_(entries),
      mask_(slots_for(entries) - 1),
      channel_(channel) {
    if (channel_ != nullptr) {
        ++channel_->uses;
    }
}

CompletionQueue::~CompletionQueue() {
    if (channel_ != nullptr) {
        --channel_->uses;
    }
    release_retired();
    context_.client().release_ring(ring_);
}

void CompletionQueue::release_retired() {
    if (retired_.base != nullptr) {
        context_.client().release_ring(retired_);
    }
}

std::uint32_t CompletionQueue::unconsumed() const {
    return std::min(producer_ - head().consumer.value.load(std::memory_order_acquire), entries_);
}

void CompletionQueue::write(const Cqe& entry, const WorkCompleted& record, bool urgent) {
    context_.hca().trace(record);
    if (dead_) {
        return;
    }
    if (!ignores_overrun_ && unconsumed() == entries_) {
        overrun();
        return;
    }
    slots()[producer_ & mask_] = entry;
    ++producer_;
    head().producer.value.store(producer_, std::memory_order_seq_cst);
    context_.client().completion_delivered(&head());
    notify(urgent);
}

void CompletionQueue::notify(bool urgent) {
    // Pairs with the driver, which arms and then looks again: the entry was stored and the arm is
    // loaded, there the arm is stored and the entry loaded, all in one order; one of the two sees.
    std::atomic<std::uint32_t>& arm = head().arm.value;
    const auto armed = static_cast<CqArm>(arm.load(std::memory_order_seq_cst));
    if (armed == CqArm::kNone || (armed == CqArm::kSolicited && !urgent)) {
        return;
    }
    if (moderation_ == nullptr || !hold_back()) {
        send_event_in_time();
    }
}

bool CompletionQueue::hold_back() {
    Moderation& moderation = *moderation_;
    if (++moderation.held >= moderation.count) {
        return false;
    }
    if (!moderation.timer.armed()) {
        moderation.timer.arm_in(moderation.period);
    }
    return true;
}

// The queue is armed, and stays so until this; an event a time it was armed.
void CompletionQueue::send_event() {
    trace_move(armed_state() == CqState::kArmedSolicited ? CqTrigger::kUrgentCompletion
                                                         : CqTrigger::kCompletion);
    head().arm.value.store(static_cast<std::uint32_t>(CqArm::kNone), std::memory_order_relaxed);
    notified_ = producer_;
    if (moderation_ != nullptr) {
        moderation_->held = 0;
        moderation_->timer.cancel();
    }
    if (channel_ != nullptr) {
        context_.send_event(channel_->events, {.subject = handle_});
    }
}

CqState CompletionQueue::armed_state() const {
    switch (static_cast<CqArm>(head().arm.value.load(std::memory_order_relaxed))) {
        case CqArm::kNone:
            return CqState::kQuiet;
        case CqArm::kSolicited:
            return CqState::kArmedSolicited;
        case CqArm::kNext:
            break;
    }
    return CqState::kArmed;
}

// Between two looks at memory that the consumer writes there may be no such row.
void CompletionQueue::trace_move(CqTrigger trigger) const {
    Hca& hca = context_.hca();
    if (!hca.traces(Category::kObject)) {
        return;
    }
    const CqState from = armed_state();
    if (const CqTransition* row = find_transition(from, trigger); row != nullptr) {
        hca.trace(CqStateChanged{hca.node(), handle_, from, row->to, trigger});
    }
}

void CompletionQueue::handle(const fabric::Event& event) {
    switch (static_cast<TimerPurpose>(event.argument)) {
        case TimerPurpose::kModeration:
            send_event_in_time();
            break;
        case TimerPurpose::kLateCompletion:
            write_due(context_.hca().loop().now());
            break;
        case TimerPurpose::kLateEvent:
            if (armed_state() != CqState::kQuiet) {
                send_event();
            }
            break;
    }
}

void CompletionQueue::moderate(std::uint16_t count, fabric::SimDuration period) {
    if (moderation_ != nullptr && moderation_->held > 0) {
        send_event();
    }
    moderation_.reset();
    if (count > 0 && period > fabric::SimDuration::zero()) {
        const TimerPurpose purpose = TimerPurpose::kModeration;
        moderation_.reset(new Moderation{.count = count,
                                         .period = period,
                                         .timer{context_.hca().loop(), timer_key(purpose), *this,
                                                static_cast<std::uint64_t>(purpose)}});
    }
}

void CompletionQueue::stop() {
    dead_ = true;
    moderation_.reset();
    late_.reset();
}

void CompletionQueue::overrun() {
    context_.raise(AsyncEvent::kCqErr, handle_);
    if (!context_.hca().personality().cq_overrun_kills_cq) {
        return;
    }
    trace_move(CqTrigger::kOverrun);
    dead_ = true;
    was_overrun_ = true;
    const std::vector<QueuePair*> users = users_;
    for (QueuePair* qp : users) {
        qp->fail(QpTrigger::kQpError, FaultCause::kCqOverrun);
    }
    for (ReceiveWorkQueue* wq : work_queues_) {
        wq->lose_completions();
    }
}

std::uint32_t CompletionQueue::replace_ring(RingMemory ring, std::uint32_t entries) {
    const std::uint32_t count = unconsumed();
    const std::uint32_t consumer = producer_ - count;
    auto* target = reinterpret_cast<Cqe*>(ring.base + sizeof(CompletionRing));
    for (std::uint32_t i = 0; i < count; ++i) {
        target[i] = slots()[(consumer + i) & mask_];
    }
    auto& new_head = *reinterpret_cast<CompletionRing*>(ring.base);
    new_head.arm.value.store(head().arm.value.load(std::memory_order_relaxed));
    new_head.producer.value.store(count, std::memory_order_release);
    release_retired();
    retired_ = ring_;
    ring_ = ring;
    notified_ += count - producer_;
    producer_ = count;
    entries_ = entries;
    mask_ = slots_for(entries) - 1;
    return consumer;
}

void CompletionQueue::remove_user(const QueuePair& qp) {
    write_late();
    const auto found = std::find(users_.begin(), users_.end(), &qp);
    if (found != users_.end()) {
        users_.erase(found);
    }
}

}  // namespace simverbs
