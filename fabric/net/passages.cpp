// Lets trains pass a switch: a train that arrives there is put on the next link as a whole, with
// the times at which its packets will start, where the way out is idle and as fast as the way in.
//
// Its packets have then left the one link ahead of time, and are on the other. Whoever looks at
// either, at the switch between them or at its counters, and any other frame for the way out, ends
// the passage first: packets that have passed by then are counted where they were, the others are
// given back to the first link and come one by one.
//
// Refuses multicast, lanes that change in the switch, and ways out of another rate.
#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/link_direction.hpp"
#include "fabric/net/node.hpp"
#include "fabric/net/switch.hpp"

namespace fabric {

// Lets the train that is the first on the wire pass, now that its first packet arrives. Returns
// false if that packet has to come alone.
bool LinkDirection::pass_switch() {
    const Frame& train = *head_;
    if (!to_.carries(train)) {
        return false;
    }
    auto& node = static_cast<Switch&>(to_.node());
    const Port* const port = node.way_of_train(to_, *head_);
    if (port == nullptr || !port->carries(train) || !port->peer()->carries(train) ||
        train.payload_bytes > port->attributes().link_mtu_bytes()) {
        return false;
    }
    LinkDirection& out = *port->outgoing();
    const SimTime ready = services_.loop.now() + node.forwarding_delay();
    // A last packet that is shorter than what the switch waits for would be ready too early.
    const bool ends_early = train.last_wire_bytes < Switch::kCutThroughBytes;
    const auto most = static_cast<std::uint16_t>(train.packets - (ends_early ? 1 : 0));
    SimTime end = ready;
    const std::uint16_t packets =
        out.is_idle_from(ready) ? out.take_train_credits(train, most, end) : std::uint16_t{0};
    if (packets == 0) {
        return false;
    }
    end_passage();  // the one before, which may have led elsewhere
    const SimTime arrival = train.arrival;
    FramePtr part = take_train(packets);
    if (head_ != nullptr) {
        services_.loop.schedule({head_->arrival, key_, this, 0});
    }
    passage_ = {.out = &out,
                .next = arrival,
                .forwarding_delay = node.forwarding_delay(),
                .wire_bytes = part->wire_bytes,
                .last_wire_bytes = packets == 1 ? part->wire_bytes : part->last_wire_bytes,
                .left = packets,
                .vl = part->vl};
    out.passes_from_ = this;
    to_.is_passed_ = port->is_passed_ = true;
    node.train_passes();
    part->is_ahead = false;
    out.put_train_on_wire(std::move(part), ready, end);
    count_passed();
    expect_credits();
    return true;
}

// Returns true if, on this way out of a switch, a packet that is ready at `ready` starts at once.
bool LinkDirection::is_idle_from(SimTime ready) {
    if (knows_passages()) {
        look_at_passages();
    }
    return takes_trains() && !limits_queues_ && busy_until_ <= ready &&
           waiting_since_ == SimTime::max() && (queues_ == nullptr || queues_->empty());
}

// Before anything else is decided about this direction: its way on is no longer ahead of time, and
// what has passed the switch at its end has given back its credits.
void LinkDirection::look_at_passages() {
    if (passes_from_ != nullptr) {
        passes_from_->end_passage();
    }
    count_passed();
}

void LinkDirection::end_passages() {
    settle();
    if (passes_from_ != nullptr) {
        passes_from_->end_passage();
    }
    end_passage();
}

// When the nth packet of the rest arrives at the switch, from 0 on.
SimTime LinkDirection::passes_at(std::uint16_t nth) const {
    return passage_.next + nth * rate_.transmission_time(passage_.wire_bytes);
}

// When this end learns that the nth packet of the rest takes no more room in the switch.
SimTime LinkDirection::credits_back_at(std::uint16_t nth) const {
    const bool is_last = nth + 1 == passage_.left;
    return passes_at(nth) + passage_.forwarding_delay +
           rate_.transmission_time(is_last ? passage_.last_wire_bytes : passage_.wire_bytes) +
           latency_;
}

// Counts the packets that have passed the switch since the last look, and takes their credits back.
void LinkDirection::count_passed() {
    while (passage_.left > 0 && services_.loop.is_past(passage_.next, key_)) {
        const std::uint32_t bytes =
            passage_.left == 1 ? passage_.last_wire_bytes : passage_.wire_bytes;
        to_.count_passed_in(bytes);
        passage_.out->from_.count_passed_out(bytes);
        if (buffer_blocks_ != 0) {
            credits(passage_.vl)
                .add_return(blocks_of(bytes), credits_back_at(0), services_.loop.now());
        }
        passage_.next = passes_at(1);
        --passage_.left;
    }
}

// Puts what has not passed the switch yet back on the wire that leads there.
void LinkDirection::end_passage() {
    if (passage_.out == nullptr) {
        return;
    }
    count_passed();
    LinkDirection& out = *passage_.out;
    if (passage_.left > 0) {
        const SimTime start = passage_.next + passage_.forwarding_delay;
        const SimTime last_start = start - rate_.transmission_time(passage_.wire_bytes);
        FramePtr rest = out.take_back_last(passage_.left, start, last_start);
        rest->arrival = passage_.next;
        rest->is_ahead = from_.node().kind() != NodeKind::kSwitch;
        on_wire_ += rest->packets;
        trains_ += rest->packets > 1 ? 1 : 0;
        if (head_ != nullptr) {
            services_.loop.cancel(head_->arrival, key_);
        }
        rest->next = head_;
        head_ = rest.release();
        tail_ = head_->next == nullptr ? head_ : tail_;
        services_.loop.schedule({head_->arrival, key_, this, 0});
    }
    out.passes_from_ = nullptr;
    passage_ = {};
}

// Takes the last packets off the wire of this way out of a switch. The first of them would start at
// `start`, and the one before it started at `last_start`.
FramePtr LinkDirection::take_back_last(std::uint16_t packets, SimTime start, SimTime last_start) {
    settle();
    end_passage();  // of these packets, where they are to pass another switch
    SIMVERBS_ASSERT(tail_ != nullptr && tail_->packets >= packets, "{} packets are not on the wire",
                    packets);
    Frame* before = nullptr;
    for (Frame* frame = head_; frame != tail_; frame = frame->next) {
        before = frame;
    }
    FramePtr rest(tail_);
    const auto kept = static_cast<std::uint16_t>(rest->packets - packets);
    trains_ -= rest->packets > 1 ? 1 : 0;
    if (kept > 0) {
        tail_ = rest->pool->copy_first(*rest, kept).release();
        trains_ += kept > 1 ? 1 : 0;
        FramePool::drop_first(*rest, kept);
        (before == nullptr ? head_ : before->next) = tail_;
    } else {
        if (before == nullptr) {
            services_.loop.cancel(rest->arrival, key_);
        }
        tail_ = before;
        (before == nullptr ? head_ : before->next) = nullptr;
    }
    on_wire_ -= packets;
    busy_until_ = start;
    undo_train_credits(*rest, start, last_start);
    return rest;
}

void LinkDirection::undo_train_credits(const Frame& train, SimTime start, SimTime last_start) {
    if (buffer_blocks_ == 0) {
        return;
    }
    VlCredits& lane = credits(train.vl);
    SimTime end = start;
    for (std::uint16_t i = 1; i <= train.packets; ++i) {
        const std::uint32_t bytes = i == train.packets ? train.last_wire_bytes : train.wire_bytes;
        end += rate_.transmission_time(bytes);
        if (to_switch_) {
            lane.put_back(blocks_of(bytes));
        } else {
            lane.undo(blocks_of(bytes), end + latency_ + latency_);
        }
    }
    lane.rewind(last_start);
}

// Wakes a frame that waits for credits when it may start: by those that are on their way back, or
// else by the packet still to pass that brings enough, as if that packet did it.
void LinkDirection::expect_credits() {
    if (queues_ == nullptr || buffer_blocks_ == 0 ||
        (queues_->occupied() >> passage_.vl & 1U) == 0) {
        return;
    }
    const SimTime free = std::max(services_.loop.now(), busy_until_);
    SimTime start = may_start_at(passage_.vl, free);
    std::uint32_t blocks = credits(passage_.vl).unused();
    const std::uint32_t needed = blocks_of(queues_->front(passage_.vl).wire_bytes);
    for (std::uint16_t nth = 0; nth < passage_.left && start == SimTime::max(); ++nth) {
        const bool is_last = nth + 1 == passage_.left;
        blocks += blocks_of(is_last ? passage_.last_wire_bytes : passage_.wire_bytes);
        if (blocks >= needed) {
            start = std::max({free, queues_->ready(passage_.vl), credits_back_at(nth)});
        }
    }
    if (start != SimTime::max() && (!wake_->armed() || start < wake_->deadline())) {
        wake_at(start);
    }
}

}  // namespace fabric
