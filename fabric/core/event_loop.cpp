#include "fabric/core/event_loop.hpp"

#include <algorithm>

namespace fabric {

std::optional<SimTime> EventLoop::next_time() const {
    if (empty()) {
        return std::nullopt;
    }
    const SimTime event = queue_.next_time();
    if (wheel_.lower_bound() > event) {
        return event;
    }
    return std::min(event, wheel_.earliest().value_or(SimTime::max()));
}

std::size_t EventLoop::run_instant(SimTime latest) {
    SIMVERBS_ASSERT(!running_, "the loop is run from inside an event");
    only_frames_moved_ = true;
    limit_ = after(latest);
    std::size_t count = 0;
    for (SimTime until = latest; run_one(until); until = now_) {
        ++count;
        SIMVERBS_ASSERT(count < kMaxEventsPerInstant, "time does not get past {} ps",
                        to_picoseconds(now_));
    }
    limit_ = SimTime::max();
    return count;
}

std::uint64_t EventLoop::run_until(SimTime limit) {
    SIMVERBS_ASSERT(!running_, "the loop is run from inside an event");
    const std::uint64_t before = events_run_;
    limit_ = after(limit);
    while (run_one(limit)) {
    }
    limit_ = SimTime::max();
    return events_run_ - before;
}

// Runs the next event or timer unless it is due after `limit`.
bool EventLoop::run_one(SimTime limit) {
    const Event* const first = queue_.top();
    const SimTime top = first == nullptr ? SimTime::max() : first->time;
    if (wheel_.lower_bound() <= std::min(top, limit)) {
        if (TimerEntry* const entry = timer_before(top, limit)) {
            wheel_.cancel(*entry);
            const Event& event = entry->event;
            dispatch(event.time, event.key, event.handler, event.argument);
            return true;
        }
    }
    if (top > limit || first == nullptr) {
        return false;
    }
    const Event event = *first;
    queue_.open_top(first);
    dispatch(event.time, event.key, event.handler, event.argument);
    queue_.close_top();
    return true;
}

// The timer that runs before the top of the queue and not after `limit`; nullptr if there is none.
// The wheel advances only when something is certain to run at or after where it advances to.
TimerEntry* EventLoop::timer_before(SimTime top, SimTime limit) {
    const std::optional<SimTime> earliest = top <= limit ? std::nullopt : wheel_.earliest();
    if (top > limit && (!earliest || *earliest > limit)) {
        return nullptr;
    }
    wheel_.advance(std::min(top, limit));
    TimerEntry* const entry = wheel_.due();
    if (entry == nullptr || entry->event.time > limit) {
        return nullptr;
    }
    const Event* const first = queue_.top();
    return first == nullptr || runs_before(entry->event, *first) ? entry : nullptr;
}

// By value: a handler may re-arm the timer that holds the original. Field by field, in registers:
// an event that was just written field by field is slow to copy as a whole.
[[gnu::noinline]] void EventLoop::dispatch(SimTime time, EventKey key, EventHandler* handler,
                                           std::uint64_t argument) {
    const Event event{time, key, handler, argument};
    SIMVERBS_ASSERT(event.time != now_ || event.key != last_key_,
                    "two events of one instant have the key {:#x}", event.key.packed());
    now_ = event.time;
    last_key_ = event.key;
    only_frames_moved_ &= event.key.event_class() == EventClass::kFrameArrival;
    running_ = true;
    if (follower_ != nullptr) [[unlikely]] {
        follower_->before(event);
    }
    handler->handle(event);
    running_ = false;
    ++events_run_;
}

}  // namespace fabric
