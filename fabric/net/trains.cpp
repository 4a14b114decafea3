// Sends trains over a link: consecutive packets of one message, written as one frame.
//
// A train is a way of writing frames down, not another way of sending them: times, counters and
// credits are those of its packets, and whoever looks at single frames cuts it first. What it saves
// is events: where nothing else happens in the whole simulation between two of its packets, a host
// takes them at once. How a train passes a switch is in passages.cpp.
//
// Refuses trains towards a switch of Ethernet, or one that stores and forwards.
#include <algorithm>
#include <utility>

#include "fabric/net/link_direction.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

// As many packets as there are credits for go now. The others wait together.
void LinkDirection::transmit_train(FramePtr train, SimTime ready) {
    if (!takes_trains()) {
        while (train->packets > 1) {
            transmit(train->pool->take_first(*train), ready);
        }
        transmit(std::move(train), ready);
        return;
    }
    const bool waits = queues_ != nullptr && !queues_->empty();
    if (!waits && (busy_until_ <= ready || train->vl == last_vl_)) {
        const SimTime start = std::max(ready, busy_until_);
        SimTime end = start;
        const std::uint16_t going = take_train_credits(*train, train->packets, end);
        if (going == train->packets) {
            commit_train(std::move(train), start, end);
            return;
        }
        if (going > 0) {
            FramePtr part = train->pool->copy_first(*train, going);
            FramePool::drop_first(*train, going);
            commit_train(std::move(part), start, end);
        }
    }
    wait(std::move(train), ready);
}

// Takes credits for the first packets of a train, `most` of them, which start one behind the other
// from `free` on, and moves `free` to the end of the last. Returns how many there are credits for.
std::uint16_t LinkDirection::take_train_credits(const Frame& train, std::uint16_t most,
                                                SimTime& free) {
    VlCredits* const lane = buffer_blocks_ == 0 ? nullptr : &credits(train.vl);
    const SimDuration each = rate_.transmission_time(train.wire_bytes);
    const SimDuration last = rate_.transmission_time(train.last_wire_bytes);
    const std::uint32_t blocks_each = blocks_of(train.wire_bytes);
    const std::uint32_t blocks_last = blocks_of(train.last_wire_bytes);
    std::uint16_t packets = 0;
    for (; packets < most; ++packets) {
        const bool is_last = packets + 1 == train.packets;
        const SimTime end = free + (is_last ? last : each);
        if (lane != nullptr) {
            const std::uint32_t blocks = is_last ? blocks_last : blocks_each;
            if (!lane->suffice(blocks, free)) {
                break;
            }
            take_credits(*lane, blocks, free, end + latency_);
        }
        free = end;
    }
    return packets;
}

// Puts a train of a host, or a packet of it, on the wire.
void LinkDirection::commit_train(FramePtr train, SimTime start, SimTime end) {
    from_.count_sent(*train);
    if (waiting_since_ != SimTime::max()) {
        from_.count_wait(start - std::min(start, std::exchange(waiting_since_, SimTime::max())),
                         rate_);
    }
    train->is_ahead = true;
    put_train_on_wire(std::move(train), start, end);
}

void LinkDirection::put_train_on_wire(FramePtr train, SimTime start, SimTime end) {
    busy_until_ = end;
    last_vl_ = train->vl;
    trains_ += train->packets > 1 ? 1 : 0;
    const SimTime arrival = start + time_to_decide(train->wire_bytes) + latency_;
    put_on_wire(std::move(train), arrival);
}

// The train is the first of its lane, and its first packet may start at `start`. With several lanes
// each packet takes a turn of the arbiter.
void LinkDirection::send_waiting_train(std::uint8_t lane, SimTime start) {
    const Frame& train = queues_->front(lane);
    if (!from_.carries(train)) [[unlikely]] {
        from_.drop(queues_->pop_front(lane, services_.loop.now()), DropReason::kPortNotActive);
        return;
    }
    SimTime end = start + rate_.transmission_time(train.wire_bytes);
    if (from_.attributes().operational_vls > 1) {
        if (buffer_blocks_ != 0) {
            take_credits(credits(lane), blocks_of(train.wire_bytes), start, end + latency_);
        }
        commit_train(queues_->pop_front(lane, end), start, end);
        return;
    }
    end = start;
    const std::uint16_t packets = take_train_credits(train, train.packets, end);
    commit_train(queues_->pop_train(lane, packets, end), start, end);
}

// When the second packet of a train on the wire arrives.
SimTime LinkDirection::arrival_after(const Frame& train) const {
    const std::uint32_t next = train.packets == 2 ? train.last_wire_bytes : train.wire_bytes;
    return train.arrival - time_to_decide(train.wire_bytes) +
           rate_.transmission_time(train.wire_bytes) + time_to_decide(next);
}

// When packet `nth` of a train on the wire to a host arrives, from 0 on.
SimTime LinkDirection::arrival_of(const Frame& train, std::uint16_t nth) const {
    const SimDuration each = rate_.transmission_time(train.wire_bytes);
    return nth + 1 == train.packets && nth > 0
               ? train.arrival + (nth - 1) * each + rate_.transmission_time(train.last_wire_bytes)
               : train.arrival + nth * each;
}

void LinkDirection::train_arrives() {
    if (is_deferred_) {
        is_deferred_ = false;
        services_.deferred.remove(*this);
        if (!arrive_late(head_->packets)) {
            arrive_one_by_one();
        }
        return;
    }
    if (to_switch_ ? pass_switch() : deliver_due()) {
        return;
    }
    FramePtr frame = take_train(1);
    services_.loop.schedule({head_->arrival, key_, this, 0});
    deliver(std::move(frame));
}

// Takes the first packets of the train that is the first on the wire, or all of them.
FramePtr LinkDirection::take_train(std::uint16_t packets) {
    if (packets == head_->packets) {
        --trains_;
        return take_from_wire();
    }
    FramePtr part = head_->pool->copy_first(*head_, packets);
    for (std::uint16_t i = 0; i < packets; ++i) {
        head_->arrival = arrival_after(*head_);
        FramePool::drop_first(*head_, 1);
    }
    on_wire_ -= packets;
    trains_ -= head_->packets == 1 ? 1 : 0;
    return part;
}

// Nothing else happens before the horizon, so that neither what these packets find nor who could
// see them changes until then.
bool LinkDirection::deliver_due() {
    const SimTime horizon = std::min(services_.loop.horizon(), services_.deferred.next_arrival());
    std::uint16_t packets = 0;
    while (packets < head_->packets && arrival_of(*head_, packets) < horizon) {
        ++packets;
    }
    if (packets < head_->packets && defer()) {
        return true;
    }
    const SimTime last = arrival_of(*head_, static_cast<std::uint16_t>(packets - 1));
    FramePtr part = packets > 1 ? take_together(packets) : nullptr;
    if (part == nullptr) {
        return false;
    }
    services_.loop.advance(last);
    to_.node().receive(to_, std::move(part));
    return true;
}

// Lets the train that is the first on the wire arrive when its last packet does, unless this run
// ends before: it would be settled at once.
bool LinkDirection::defer() {
    const SimTime last = arrival_of(*head_, static_cast<std::uint16_t>(head_->packets - 1));
    TouchedMemories touched;
    if (last >= services_.loop.limit() || !to_.carries(*head_) ||
        services_.bus.wants(trace::Category::kPacket) ||
        !to_.node().would_take(to_, *head_, last, touched) ||
        !services_.deferred.has_room_for(touched)) {
        return false;
    }
    is_deferred_ = to_.is_passed_ = true;
    services_.deferred.add(*this, touched);
    services_.loop.schedule({last, key_, this, 0});
    return true;
}

SimTime LinkDirection::next_deferred_arrival() const {
    const SimDuration each = rate_.transmission_time(head_->wire_bytes);
    const auto arrived = (services_.loop.now() - head_->arrival) / each;
    const auto last = static_cast<std::uint16_t>(head_->packets - 1);
    return arrived >= last ? arrival_of(*head_, last)
                           : arrival_of(*head_, static_cast<std::uint16_t>(arrived + 1));
}

// The last packet is never among those that have arrived: its event would have run.
void LinkDirection::settle() {
    if (!is_deferred_) {
        return;
    }
    is_deferred_ = false;
    services_.deferred.remove(*this);
    services_.loop.cancel(arrival_of(*head_, static_cast<std::uint16_t>(head_->packets - 1)), key_);
    std::uint16_t packets = 0;
    while (services_.loop.is_past(arrival_of(*head_, packets), key_)) {
        ++packets;
    }
    if (!arrive_late(packets)) {
        put_off(packets);
    }
}

// The first packets of a train that was deferred. Returns false if they are refused, as happens
// only where a process has unmapped its memory without a word.
bool LinkDirection::arrive_late(std::uint16_t packets) {
    const SimTime last = arrival_of(*head_, static_cast<std::uint16_t>(packets - 1));
    FramePtr part = take_together(packets);
    if (part == nullptr) {
        return false;
    }
    const EventLoop::AsOf as_of(services_.loop, last);
    to_.node().receive(to_, std::move(part));
    return true;
}

// All packets of the train, whose event this is. The first may make single packets of the others.
void LinkDirection::arrive_one_by_one() {
    for (std::uint16_t packets = head_->packets; packets > 0; --packets) {
        FramePtr frame = head_->packets > 1 ? take_train(1) : take_from_wire();
        if (packets == 1 && head_ != nullptr) {
            services_.loop.schedule({head_->arrival, key_, this, 0});
        }
        deliver(std::move(frame));
    }
}

// Takes packets that the host has refused, the first of a train and not all, off the wire. They
// arrive one by one in an event of their own, a picosecond later: that fails a queue pair, which
// cuts the trains of all links, and whoever settles may be in the middle of one.
void LinkDirection::put_off(std::uint16_t packets) {
    Frame** last = &late_;
    while (*last != nullptr) {
        last = &(*last)->next;
    }
    if (late_ == nullptr) {
        late_at_ = services_.loop.now() + SimDuration(1);
        services_.loop.schedule({late_at_, late_key(), this, 0});
    }
    for (; packets > 0; --packets) {
        *last = take_train(1).release();
        last = &(*last)->next;
    }
    services_.loop.schedule({head_->arrival, key_, this, 0});
}

void LinkDirection::deliver_late() {
    while (late_ != nullptr) {
        FramePtr frame(late_);
        late_ = std::exchange(frame->next, nullptr);
        deliver(std::move(frame));
    }
}

// Several packets of the train that is the first on the wire, taken by the host as far as memory
// goes. nullptr: they have to come one by one.
FramePtr LinkDirection::take_together(std::uint16_t packets) {
    const bool whole = packets == head_->packets;
    FramePtr part = whole ? nullptr : head_->pool->copy_first(*head_, packets);
    Frame& moving = whole ? *head_ : *part;
    if (!to_.carries(moving) || services_.bus.wants(trace::Category::kPacket) ||
        !to_.node().take_ahead(to_, moving)) {
        return nullptr;
    }
    const SimTime next = whole ? SimTime{} : arrival_of(*head_, packets);
    if (whole) {
        --trains_;
        part = take_from_wire();
    } else {
        on_wire_ -= packets;
        FramePool::drop_first(*head_, packets);
        trains_ -= head_->packets == 1 ? 1 : 0;
        head_->arrival = next;
    }
    if (head_ != nullptr) {
        services_.loop.schedule({head_->arrival, key_, this, 0});
    }
    to_.count_received(*part);
    return part;
}

void LinkDirection::cut_trains() {
    end_passages();
    if (queues_ != nullptr) {
        queues_->cut_trains();
    }
    if (trains_ == 0) {
        return;
    }
    Frame* previous = nullptr;
    for (Frame* frame = head_; frame != nullptr; frame = frame->next) {
        while (frame->packets > 1) {
            const SimTime next_arrival = arrival_after(*frame);
            Frame* const first = frame->pool->take_first(*frame).release();
            first->next = frame;
            (previous == nullptr ? head_ : previous->next) = first;
            previous = first;
            frame->arrival = next_arrival;
        }
        previous = frame;
    }
    trains_ = 0;
}

}  // namespace fabric
