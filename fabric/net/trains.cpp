// Sends trains over a link: consecutive packets of one message, written as one frame.
//
// A train is a way of writing frames down, not another way of sending them: times, counters and
// credits are those of its packets, and whoever looks at single frames cuts it first. What it saves
// is events: where nothing else happens in the whole simulation between two of its packets, a host
// takes them at once.
//
// Refuses trains towards a switch, which would have to put back what it sent ahead.
#include <utility>

#include "fabric/net/link_direction.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

// As many packets as there are credits for go as a train; what has to wait does so one by one.
void LinkDirection::transmit_train(FramePtr train, SimTime ready) {
    std::uint16_t going = 0;
    const SimTime first_start = std::max(ready, busy_until_);
    if (takes_trains() && (busy_until_ <= ready || train->vl == last_vl_)) {
        SimTime start = first_start;
        for (; going < train->packets; ++going) {
            const bool last = going + 1 == train->packets;
            const std::uint32_t bytes = last ? train->last_wire_bytes : train->wire_bytes;
            const SimTime end = start + rate_.transmission_time(bytes);
            if (buffer_blocks_ != 0) {
                if (!credits(train->vl).suffice(blocks_of(bytes), start)) {
                    break;
                }
                take_credits(train->vl, bytes, start, end + latency_);
            }
            start = end;
        }
        busy_until_ = going > 0 ? start : busy_until_;
    }
    const bool whole = going == train->packets;
    if (going > 0) {
        FramePtr part = whole ? std::move(train) : train->pool->copy_first(*train, going);
        last_vl_ = part->vl;
        from_.count_sent(*part);
        part->is_ahead = true;
        trains_ += part->packets > 1 ? 1 : 0;
        const SimTime arrival = first_start + rate_.transmission_time(part->wire_bytes) + latency_;
        put_on_wire(std::move(part), arrival);
    }
    if (whole) {
        return;
    }
    if (going > 0) {
        // NOLINTNEXTLINE(bugprone-use-after-move): it is moved from where it goes as a whole
        FramePool::drop_first(*train, going);
    }
    while (train->packets > 1) {
        transmit(train->pool->take_first(*train), ready);
    }
    transmit(std::move(train), ready);
}

// Nothing else happens before the horizon, so that neither what these packets find nor who could
// see them changes until then.
void LinkDirection::train_arrives() {
    const SimTime horizon = services_.loop.horizon();
    const SimDuration each = rate_.transmission_time(head_->wire_bytes);
    const SimDuration to_last = rate_.transmission_time(head_->last_wire_bytes);
    std::uint16_t packets = 0;
    for (SimTime arrival = head_->arrival; packets < head_->packets && arrival < horizon;) {
        ++packets;
        arrival += packets + 1 == head_->packets ? to_last : each;
    }
    if (packets > 1 && deliver_first(packets)) {
        return;
    }
    FramePtr frame = head_->pool->take_first(*head_);
    --on_wire_;
    trains_ -= head_->packets == 1 ? 1 : 0;
    head_->arrival += rate_.transmission_time(head_->wire_bytes);
    services_.loop.schedule({head_->arrival, key_, this, 0});
    deliver(std::move(frame));
}

// Several packets of the train that is the first on the wire. False: they have to come one by one.
bool LinkDirection::deliver_first(std::uint16_t packets) {
    const bool whole = packets == head_->packets;
    FramePtr part = whole ? nullptr : head_->pool->copy_first(*head_, packets);
    Frame& moving = whole ? *head_ : *part;
    if (!to_.carries(moving) || services_.bus.wants(trace::Category::kPacket) ||
        !to_.node().take_ahead(to_, moving)) {
        return false;
    }
    const SimTime last_arrival = moving.arrival +
                                 (packets - 2) * rate_.transmission_time(moving.wire_bytes) +
                                 rate_.transmission_time(moving.last_wire_bytes);
    if (whole) {
        --trains_;
        part = take_from_wire();
    } else {
        on_wire_ -= packets;
        FramePool::drop_first(*head_, packets);
        trains_ -= head_->packets == 1 ? 1 : 0;
        head_->arrival = last_arrival + rate_.transmission_time(head_->wire_bytes);
    }
    if (head_ != nullptr) {
        services_.loop.schedule({head_->arrival, key_, this, 0});
    }
    to_.count_received(*part);
    services_.loop.advance(last_arrival);
    to_.node().receive(to_, std::move(part));
    return true;
}

void LinkDirection::cut_trains() {
    if (trains_ == 0) {
        return;
    }
    Frame* previous = nullptr;
    for (Frame* frame = head_; frame != nullptr; frame = frame->next) {
        while (frame->packets > 1) {
            Frame* const first = frame->pool->take_first(*frame).release();
            first->next = frame;
            (previous == nullptr ? head_ : previous->next) = first;
            previous = first;
            frame->arrival += rate_.transmission_time(frame->wire_bytes);
        }
        previous = frame;
    }
    trains_ = 0;
}

}  // namespace fabric
