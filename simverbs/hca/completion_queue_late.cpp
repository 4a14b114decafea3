// Completions and events of completion queues that a fault delays.
#include <algorithm>
#include <utility>

#include "simverbs/hca/completion_queue.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/injected_fault.hpp"

namespace simverbs {

CompletionQueue::Late& CompletionQueue::late() {
    if (late_ == nullptr) {
        fabric::EventLoop& loop = context_.hca().loop();
        const auto completions = TimerPurpose::kLateCompletion;
        const auto events = TimerPurpose::kLateEvent;
        late_.reset(new Late{
            .completion_timer{loop, timer_key(completions), *this,
                              static_cast<std::uint64_t>(completions)},
            .event_timer{loop, timer_key(events), *this, static_cast<std::uint64_t>(events)}});
    }
    return *late_;
}

void CompletionQueue::delay_next(fabric::SimDuration delay) {
    if (!dead_) {
        late().next = delay;
    }
}

// Returns false if the entry is to be written now.
bool CompletionQueue::keep_late(const Cqe& entry, const WorkCompleted& record, bool urgent) {
    Late& late = *late_;
    const fabric::SimTime now = context_.hca().loop().now();
    fabric::SimTime due = now + std::exchange(late.next, fabric::SimDuration::zero());
    if (due == now && late.completions.empty()) {
        return false;
    }
    if (!late.completions.empty()) {
        due = std::max(due, late.completions.back().due);
    } else {
        late.completion_timer.arm(due);
    }
    late.completions.push_back({entry, record, urgent, due});
    return true;
}

// An entry that finds no room takes the queue down, and more entries with it.
void CompletionQueue::write_due(fabric::SimTime now) {
    while (late_ != nullptr && !late_->completions.empty() &&
           late_->completions.front().due <= now) {
        const Late::Completion completion = late_->completions.front();
        late_->completions.pop_front();
        write(completion.entry, completion.record, completion.urgent);
    }
    if (late_ != nullptr && !late_->completions.empty()) {
        late_->completion_timer.arm(late_->completions.front().due);
    }
}

void CompletionQueue::write_late() {
    if (late_ != nullptr) {
        write_due(fabric::SimTime::max());
        late_->completion_timer.cancel();
    }
}

void CompletionQueue::notify_again() {
    if (!dead_) {
        notify(true);
    }
}

void CompletionQueue::send_event_in_time() {
    if (late_ != nullptr && late_->event_timer.armed()) {
        return;  // that event tells of this completion, too
    }
    Hca& hca = context_.hca();
    if (channel_ != nullptr && hca.faults() != nullptr) [[unlikely]] {
        const fabric::SimDuration delay = hca.faults()->completion_event(hca);
        if (delay > fabric::SimDuration::zero()) {
            late().event_timer.arm_in(delay);
            return;
        }
    }
    send_event();
}

}  // namespace simverbs
