// Keeps frames that wait for the transmitter of a link, for credits, or for other lanes.
#include <algorithm>
#include <bit>
#include <utility>

#include "fabric/net/link_direction.hpp"
#include "fabric/net/net_events.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

bool LinkDirection::starves(std::uint8_t lane) const {
    return queues_ != nullptr && (queues_->occupied() >> lane & 1U) != 0 &&
           may_start_at(lane, std::max(services_.loop.now(), busy_until_)) == SimTime::max();
}

std::uint32_t LinkDirection::unused_credits(std::uint8_t lane) {
    end_passages();
    if (lane >= credits_.size()) {
        return buffer_blocks_;
    }
    if (to_switch_) {
        return credits_[lane].unused();
    }
    // A host knows of every frame on the wire when its credits come back.
    const SimTime arrived = services_.loop.now() + latency_;
    return buffer_blocks_ - std::min(buffer_blocks_, credits_[lane].returned_after(arrived));
}

void LinkDirection::make_queues() {
    if (queues_ == nullptr) {
        queues_ = std::make_unique<LaneQueues>();
        const EventKey key(EventClass::kTimer, from_.node().id(), kWakeTimer,
                           from_.number().value());
        wake_ = std::make_unique<Timer>(services_.loop, key, *this);
    }
}

void LinkDirection::wait(FramePtr frame, SimTime ready) {
    make_queues();
    const bool is_first = (queues_->occupied() >> frame->vl & 1U) == 0;
    if (frame->vl != last_vl_) {
        take_back_unstarted();
    }
    queues_->push_back(std::move(frame), ready);
    if (is_first) {
        send_waiting();
    }
}

// Frames that were given their time ahead of it wait again: another lane has a word in it now. None
// of them starts earlier than it would have.
void LinkDirection::take_back_unstarted() {
    cut_trains();
    const SimTime now = services_.loop.now();
    Frame* kept = nullptr;
    for (Frame* frame = head_; frame != nullptr; frame = frame->next) {
        if (!frame->is_ahead || frame->arrival <= settled_until_ || start_of(*frame) <= now) {
            kept = frame;
        }
    }
    Frame* taken = kept == nullptr ? head_ : kept->next;
    if (taken == nullptr) {
        return;
    }
    make_queues();
    if (kept == nullptr) {
        services_.loop.cancel(head_->arrival, key_);
        head_ = nullptr;
    } else {
        kept->next = nullptr;
    }
    tail_ = kept;
    busy_until_ = start_of(*taken);
    Frame* reversed = nullptr;
    while (taken != nullptr) {
        Frame* const next = std::exchange(taken->next, reversed);
        reversed = std::exchange(taken, next);
    }
    while (reversed != nullptr) {
        FramePtr frame(reversed);
        reversed = std::exchange(frame->next, nullptr);
        --on_wire_;
        from_.uncount_sent(*frame);
        undo_credits(*frame);
        services_.bus.emit(
            now, FrameHeldBack{from_.node().id(), from_.number(), frame->source, frame->flow,
                               frame->number, frame->slid, frame->dlid, frame->wire_bytes});
        queues_->push_front(std::move(frame), now);
    }
    rewind_credits();
}

// When the lane's first frame may start on a transmitter that is free from `free` on.
SimTime LinkDirection::may_start_at(std::uint8_t lane, SimTime free) const {
    const Frame& frame = queues_->front(lane);
    const SimTime start = std::max(free, queues_->ready(lane));
    if (has_credits(frame, start)) {
        return start;
    }
    if (buffer_blocks_ == 0) {
        return SimTime::max();  // paused
    }
    return lane < credits_.size() ? credits_[lane].when(blocks_of(frame.wire_bytes), start)
                                  : SimTime::max();
}

SimTime LinkDirection::lifetime_ends(std::uint8_t lane) const {
    const SimDuration limit = from_.attributes().head_of_queue_limit();
    const bool limited = from_.node().kind() == NodeKind::kSwitch && lane != kManagementVl &&
                         limit != SimDuration::max();
    return limited ? queues_->first_since(lane) + limit : SimTime::max();
}

// IBA 18.2.5.4.
bool LinkDirection::drop_expired() {
    std::uint32_t expired = 0;
    queues_->for_each_occupied([this, &expired](std::uint8_t lane) {
        if (lifetime_ends(lane) <= services_.loop.now()) {
            expired |= 1U << lane;
        }
    });
    if (expired == 0) {
        return false;
    }
    const auto lane = static_cast<std::uint8_t>(std::countr_zero(expired));
    from_.drop(queues_->pop_front(lane, services_.loop.now()), DropReason::kHeadOfQueueLifetime);
    return true;
}

// Puts on the wire what may go now, and arranges to be called when more may.
void LinkDirection::send_waiting() {
    look_at_passed();
    const SimTime now = services_.loop.now();
    while (!queues_->empty()) {
        if (drop_expired()) {
            continue;
        }
        const SimTime free = std::max(now, busy_until_);
        SimTime first = SimTime::max();
        SimTime first_ready = SimTime::max();
        SimTime next_end = SimTime::max();
        std::uint32_t lanes = 0;
        queues_->for_each_occupied([&](std::uint8_t lane) {
            const SimTime start = may_start_at(lane, free);
            lanes = start < first ? 0 : lanes;
            lanes |= start <= first ? 1U << lane : 0;
            first = std::min(first, start);
            first_ready = std::min(first_ready, queues_->ready(lane));
            next_end = std::min(next_end, lifetime_ends(lane));
        });
        // Nothing else is there, and the frame waits for the transmitter alone.
        const bool ahead =
            queues_->only_one_occupied() && first == std::max(free, first_ready) &&
            queues_->front(static_cast<std::uint8_t>(std::countr_zero(lanes))).ingress == 0;
        if (first > now && !ahead) {
            waiting_since_ = std::min(waiting_since_, std::max(busy_until_, first_ready));
            wake_at(std::min(first, next_end));
            if (passage_.out != nullptr) [[unlikely]] {
                expect_credits();
            }
            return;
        }
        const std::uint8_t lane = choose(lanes);
        if (queues_->front(lane).packets > 1) [[unlikely]] {
            send_waiting_train(lane, first);
            continue;
        }
        FramePtr frame = queues_->pop_front(
            lane, first + rate_.transmission_time(queues_->front(lane).wire_bytes));
        if (!from_.carries(*frame)) [[unlikely]] {
            from_.drop(std::move(frame), DropReason::kPortNotActive);
            continue;
        }
        commit(std::move(frame), first);
    }
    wake_->cancel();
}

std::uint8_t LinkDirection::choose(std::uint32_t lanes) {
    if ((lanes >> kManagementVl & 1U) != 0) {
        return kManagementVl;
    }
    if (from_.attributes().operational_vls == 1) {
        return static_cast<std::uint8_t>(std::countr_zero(lanes));
    }
    if (arbiter_ == nullptr) {
        arbiter_ = std::make_unique<VlArbiter>();
    }
    return arbiter_->choose(from_.attributes().vl_arbitration, lanes, [this](std::uint8_t lane) {
        return blocks_of(queues_->front(lane).wire_bytes);
    });
}

// An event may come to pass at its own instant only in a class that is not over.
void LinkDirection::wake_at(SimTime time) {
    if (time == SimTime::max()) {
        wake_->cancel();
    } else {
        wake_->arm(std::max(time, services_.loop.now() + SimDuration(1)));
    }
}

}  // namespace fabric
