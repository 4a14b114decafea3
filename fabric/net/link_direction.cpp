#include "fabric/net/link_direction.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/frame_observer.hpp"
#include "fabric/net/net_events.hpp"
#include "fabric/net/node.hpp"
#include "fabric/net/switch.hpp"

namespace fabric {

namespace {

bool is_switch(const Port& port) {
    return port.node().kind() == NodeKind::kSwitch;
}

}  // namespace

// The source port alone makes the key unique: a direction delivers one frame at a time.
LinkDirection::LinkDirection(Port& from, Port& to, const LinkProperties& properties,
                             const NetworkServices& services)
    : services_(services),
      from_(from),
      to_(to),
      rate_(properties.rate),
      latency_(properties.latency),
      key_(EventClass::kFrameArrival, from.node().id(), from.number(), 0),
      buffer_blocks_(properties.buffer_bytes / kCreditBlockBytes),
      cuts_through_(is_switch(to) && static_cast<const Switch&>(to.node()).cuts_through()),
      to_switch_(is_switch(to)),
      limits_queues_(is_switch(from) && properties.queueing.has_value()),
      queueing_(properties.queueing) {
    if (queueing_ && to_switch_) {
        pausing_ = std::make_unique<Pausing>();
    }
}

LinkDirection::~LinkDirection() {
    drop_all(DropReason::kTeardown);
}

SimTime LinkDirection::free_at() {
    end_passages();
    const SimTime free = std::max(services_.loop.now(), busy_until_);
    return queues_ == nullptr || queues_->empty()
               ? free
               : free + rate_.transmission_time(static_cast<std::uint32_t>(queues_->bytes()));
}

// The two functions of a hop, and Switch::receive, are made one piece each: a tenth to a fifth of
// the time of a frame on an idle fabric. What traces, groups and Ethernet need stays apart: with
// it, link-time optimisation of a program takes about a minute longer.
//
// A frame that a filter takes goes no further than the wire, and takes no room at the other end:
// the credits of lost packets come back with the next flow control packet (IBA 7.9.4.4).
[[gnu::flatten]] void LinkDirection::transmit(FramePtr frame, SimTime ready) {
    if (knows_passages()) [[unlikely]] {
        look_at_passages();
    }
    if (frame->packets > 1) [[unlikely]] {
        transmit_train(std::move(frame), ready);
        return;
    }
    if (!filters_.empty() && filters_take(*frame)) [[unlikely]] {
        from_.node().release_buffer(*frame, services_.loop.now());
        return;
    }
    if (limits_queues_) {
        if (has_no_room(*frame)) {
            from_.drop(std::move(frame), DropReason::kQueueFull);
            return;
        }
    }
    if (may_go(*frame, ready)) [[likely]] {
        commit(std::move(frame), std::max(ready, busy_until_));
    } else {
        wait(std::move(frame), ready);
    }
}

// Returns true if nothing that comes later could go first. A frame in a switch holds a buffer whose
// sender may learn only once when it is free, so it is not sent ahead of its time.
bool LinkDirection::may_go(const Frame& frame, SimTime ready) const {
    if (queues_ != nullptr && !queues_->empty()) {
        return false;
    }
    if (busy_until_ > ready && (frame.ingress != 0 || frame.vl != last_vl_)) {
        return false;
    }
    return has_credits(frame, std::max(ready, busy_until_));
}

bool LinkDirection::has_credits(const Frame& frame, SimTime at) const {
    if (pausing_ != nullptr && (pausing_->reached >> frame.vl & 1U) != 0) [[unlikely]] {
        return false;
    }
    if (buffer_blocks_ == 0 || frame.vl == kManagementVl || frame.is_lost) {
        return true;
    }
    const std::uint32_t blocks = blocks_of(frame.wire_bytes);
    return frame.vl < credits_.size() ? credits_[frame.vl].suffice(blocks, at)
                                      : blocks <= buffer_blocks_;
}

VlCredits& LinkDirection::credits(std::uint8_t lane) {
    if (lane >= credits_.size()) [[unlikely]] {
        credits_.resize(lane + 1U, VlCredits(buffer_blocks_));
    }
    return credits_[lane];
}

void LinkDirection::commit(FramePtr frame, SimTime start) {
    busy_until_ = start + rate_.transmission_time(frame->wire_bytes);
    last_vl_ = frame->vl;
    if (limits_queues_) {
        mark_by_queue(*frame);
    }
    from_.count_sent(*frame);
    if (waiting_since_ != SimTime::max()) {
        from_.count_wait(start - std::min(start, std::exchange(waiting_since_, SimTime::max())),
                         rate_);
    }
    frame->is_ahead = frame->ingress == 0;
    from_.node().release_buffer(*frame, busy_until_);
    const SimTime arrival =
        cuts_through_ ? start + time_to_decide(*frame) + latency_ : busy_until_ + latency_;
    if (services_.bus.wants(trace::Category::kPacket)) [[unlikely]] {
        trace_sent(*frame, start);
    }
    if (frame->is_lost) [[unlikely]] {
        frame->arrival = start;  // for who observes it
        from_.drop(std::move(frame), DropReason::kFault);
        return;
    }
    if (buffer_blocks_ != 0 && frame->vl != kManagementVl) {
        take_credits(credits(frame->vl), blocks_of(frame->wire_bytes), start, arrival);
    }
    put_on_wire(std::move(frame), arrival);
}

// Returns the time until the other end can do something: of a frame that is cut through the part
// with all that a switch looks at.
SimDuration LinkDirection::time_to_decide(std::uint32_t bytes) const {
    return rate_.transmission_time(cuts_through_ ? std::min(bytes, Switch::kCutThroughBytes)
                                                 : bytes);
}

bool LinkDirection::filters_take(Frame& frame) {
    if (frame.is_past_filters) {
        frame.is_past_filters = false;
        return false;
    }
    const SimTime now = services_.loop.now();
    Verdict verdict = Verdict::kPass;
    for (auto filter = filters_.begin(); filter != filters_.end() && verdict == Verdict::kPass;
         ++filter) {
        verdict = (*filter)->inspect(now, frame, *this);
    }
    if (services_.frame_observer != nullptr) {
        services_.frame_observer->filtered(frame);
    }
    frame.is_lost = frame.is_lost || verdict == Verdict::kDrop;
    return verdict == Verdict::kTake;
}

void LinkDirection::put_on_wire(FramePtr frame, SimTime arrival) {
    SIMVERBS_ASSERT(on_wire_ < kMaxFramesInFlight, "{} frames are queued at {} port {}", on_wire_,
                    from_.node().name(), from_.number().value());
    on_wire_ += frame->packets;
    frame->arrival = arrival;
    Frame* const last = frame.release();
    if (head_ == nullptr) {
        head_ = last;
        services_.loop.schedule({arrival, key_, this, 0});
    } else {
        tail_->next = last;
    }
    tail_ = last;
}

FramePtr LinkDirection::take_from_wire() {
    FramePtr frame(head_);
    head_ = std::exchange(frame->next, nullptr);
    on_wire_ -= frame->packets;
    return frame;
}

[[gnu::flatten]] void LinkDirection::handle(const Event& event) {
    if (event.key != key_) {
        if (event.key.port() == kWakeTimer) {
            send_waiting();
        } else if (event.key.port() == kLateArrival) {
            deliver_late();
        } else {
            set_paused(static_cast<std::uint8_t>(event.argument >> 1U), (event.argument & 1U) != 0);
        }
        return;
    }
    if (head_->packets > 1) [[unlikely]] {
        train_arrives();
        return;
    }
    FramePtr frame = take_from_wire();
    if (head_ != nullptr) {
        services_.loop.schedule({head_->arrival, key_, this, 0});
    }
    deliver(std::move(frame));
}

// A host takes a frame out of the port's buffer as it comes, which is known when it is sent; in a
// switch it stays until it has left by another port.
void LinkDirection::take_credits(VlCredits& lane, std::uint32_t blocks, SimTime start,
                                 SimTime arrival) {
    lane.take(blocks, start);
    if (!to_switch_) {
        lane.add_return(blocks, arrival + latency_, services_.loop.now());
    }
}

// The frame, which is still to arrive, does not.
void LinkDirection::undo_credits(const Frame& frame) {
    if (buffer_blocks_ == 0 || frame.vl == kManagementVl) {
        return;
    }
    if (to_switch_) {
        credits(frame.vl).put_back(blocks_of(frame.wire_bytes));
    } else {
        credits(frame.vl).undo(blocks_of(frame.wire_bytes), frame.arrival + latency_);
    }
}

void LinkDirection::rewind_credits() {
    if (!to_switch_) {
        for (VlCredits& lane : credits_) {
            lane.rewind(services_.loop.now());
        }
    }
}

void LinkDirection::deliver(FramePtr frame) {
    if (buffer_blocks_ != 0 && to_switch_ && frame->vl != kManagementVl) {
        frame->ingress = to_.number().value();
        frame->ingress_vl = frame->vl;
    }
    if (pausing_ != nullptr && frame->vl < kPriorities) {
        frame->ingress = to_.number().value();
        frame->ingress_vl = frame->vl;
        hold(frame->vl, frame->wire_bytes);
    }
    if (!to_.carries(*frame)) [[unlikely]] {
        to_.drop(std::move(frame), DropReason::kArrivedInactive);
        return;
    }
    to_.count_received(*frame);
    if (services_.bus.wants(trace::Category::kPacket)) [[unlikely]] {
        trace_received(*frame);
    }
    to_.node().receive(to_, std::move(frame));
}

void LinkDirection::trace_sent(const Frame& frame, SimTime start) {
    services_.bus.emit(services_.loop.now(),
                       FrameSent{from_.node().id(), from_.number(), frame.source, frame.flow,
                                 frame.number, frame.slid, frame.dlid, frame.wire_bytes,
                                 to_picoseconds(start), to_picoseconds(busy_until_ + latency_)});
}

void LinkDirection::trace_received(const Frame& frame) {
    services_.bus.emit(services_.loop.now(),
                       FrameReceived{to_.node().id(), to_.number(), frame.source, frame.flow,
                                     frame.number, frame.slid, frame.dlid, frame.wire_bytes});
    if (services_.frame_observer != nullptr) {
        services_.frame_observer->delivered(*this, frame, start_of(frame));
    }
}

void LinkDirection::give_back(std::uint8_t lane, std::uint32_t bytes, SimTime when) {
    if (pausing_ != nullptr) {
        release_held(lane, bytes);
        return;
    }
    look_at_passed();
    credits(lane).add_return(blocks_of(bytes), when + latency_, services_.loop.now());
    if (queues_ == nullptr || (queues_->occupied() >> lane & 1U) == 0) {
        return;
    }
    const SimTime start = may_start_at(lane, std::max(services_.loop.now(), busy_until_));
    if (start != SimTime::max() && (!wake_->armed() || start < wake_->deadline())) {
        wake_at(start);
    }
}

void LinkDirection::drop_all(DropReason reason) {
    cut_trains();
    if (late_ != nullptr) {
        services_.loop.cancel(late_at_, late_key());
    }
    while (late_ != nullptr) {
        FramePtr frame(late_);
        late_ = std::exchange(frame->next, nullptr);
        from_.drop(std::move(frame), reason);
    }
    if (head_ != nullptr) {
        services_.loop.cancel(head_->arrival, key_);
    }
    while (head_ != nullptr) {
        FramePtr frame = take_from_wire();
        undo_credits(*frame);
        from_.drop(std::move(frame), reason);
    }
    rewind_credits();
    if (queues_ != nullptr) {
        wake_->cancel();
        queues_->for_each_occupied([this, reason](std::uint8_t lane) {
            while ((queues_->occupied() >> lane & 1U) != 0) {
                from_.drop(queues_->pop_front(lane, SimTime{}), reason);
            }
        });
    }
    waiting_since_ = SimTime::max();
    busy_until_ = SimTime{};
}

void LinkDirection::pause_until(SimTime until) {
    take_back_unstarted();
    busy_until_ = std::max(busy_until_, until);
    if (queues_ != nullptr) {
        send_waiting();
    }
}

// Frames on the wire go on as they began.
void LinkDirection::set_rate(Rate rate) {
    take_back_unstarted();
    settled_until_ = busy_until_ + latency_;
    rate_ = rate;
    if (queues_ != nullptr) {
        send_waiting();
    }
}

}  // namespace fabric
