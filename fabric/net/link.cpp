#include "fabric/net/link.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/net_events.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

// The source port alone makes the key unique: a direction delivers one frame at a time.
LinkDirection::LinkDirection(Port& from, Port& to, Rate rate, SimDuration latency,
                             const NetworkServices& services)
    : services_(services),
      from_(from),
      to_(to),
      rate_(rate),
      latency_(latency),
      key_(EventClass::kFrameArrival, from.node().id(), from.number(), 0) {}

LinkDirection::~LinkDirection() {
    drop_all(DropReason::kTeardown);
}

void LinkDirection::transmit(FramePtr frame, SimTime ready) {
    const SimTime start = std::max(ready, busy_until_);
    busy_until_ = start + rate_.transmission_time(frame->wire_bytes);
    const SimTime arrival = busy_until_ + latency_;
    from_.count_sent(*frame);
    if (services_.bus.wants(trace::Category::kPacket)) [[unlikely]] {
        services_.bus.emit(services_.loop.now(),
                           FrameSent{from_.node().id(), from_.number(), frame->source, frame->flow,
                                     frame->slid, frame->dlid, frame->wire_bytes,
                                     to_picoseconds(start), to_picoseconds(arrival)});
    }
    if (!filters_.empty() && filters_drop(*frame)) [[unlikely]] {
        from_.drop(std::move(frame), DropReason::kFault);
        return;
    }
    enqueue(std::move(frame), arrival);
}

bool LinkDirection::filters_drop(Frame& frame) {
    const SimTime now = services_.loop.now();
    return std::any_of(filters_.begin(), filters_.end(), [&](LinkFilter* filter) {
        return filter->inspect(now, frame, *this) == Verdict::kDrop;
    });
}

void LinkDirection::enqueue(FramePtr frame, SimTime arrival) {
    SIMVERBS_ASSERT(in_flight_ < kMaxFramesInFlight, "{} frames are queued at {} port {}",
                    in_flight_, from_.node().name(), from_.number().value());
    ++in_flight_;
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

FramePtr LinkDirection::dequeue() {
    FramePtr frame(head_);
    head_ = std::exchange(frame->next, nullptr);
    --in_flight_;
    return frame;
}

void LinkDirection::handle(const Event& /*event*/) {
    FramePtr frame = dequeue();
    if (head_ != nullptr) {
        services_.loop.schedule({head_->arrival, key_, this, 0});
    }
    if (!to_.carries(*frame)) [[unlikely]] {
        to_.drop(std::move(frame), DropReason::kPortNotActive);
        return;
    }
    to_.count_received(*frame);
    if (services_.bus.wants(trace::Category::kPacket)) [[unlikely]] {
        services_.bus.emit(services_.loop.now(),
                           FrameReceived{to_.node().id(), to_.number(), frame->source, frame->flow,
                                         frame->slid, frame->dlid, frame->wire_bytes});
    }
    to_.node().receive(to_, std::move(frame));
}

void LinkDirection::drop_all(DropReason reason) {
    if (head_ != nullptr) {
        services_.loop.cancel(head_->arrival, key_);
    }
    while (head_ != nullptr) {
        from_.drop(dequeue(), reason);
    }
    busy_until_ = SimTime{};
}

Link::Link(std::size_t index, std::string name, std::array<Port*, 2> ends, Rate rate,
           SimDuration latency, const NetworkServices& services)
    : services_(services),
      index_(index),
      name_(std::move(name)),
      ends_(ends),
      rate_(rate),
      latency_(latency),
      directions_{LinkDirection(*ends[0], *ends[1], rate, latency, services),
                  LinkDirection(*ends[1], *ends[0], rate, latency, services)} {
    ends[0]->attach(*this, *ends[1], directions_[0]);
    ends[1]->attach(*this, *ends[0], directions_[1]);
}

LinkDirection& Link::direction_from(const Port& port) {
    SIMVERBS_ASSERT(&port == ends_[0] || &port == ends_[1], "port {} of {} is not on link {}",
                    port.number().value(), port.node().name(), name_);
    return directions_[&port == ends_[0] ? 0 : 1];
}

LinkDirection& Link::direction_from(NodeId node) {
    return direction_from(ends_[0]->node().id() == node ? *ends_[0] : *ends_[1]);
}

void Link::set_rate(LinkWidth width, LinkSpeed speed) {
    rate_ = effective_rate(width, speed);
    for (LinkDirection& direction : directions_) {
        direction.rate_ = rate_;
    }
    for (Port* const port : ends_) {
        PortAttributes& attributes = port->mutable_attributes();
        attributes.width = width;
        attributes.speed = speed;
        port->raise(PortEvent::kSpeedChange);
    }
}

void Link::set_state(LinkState state) {
    plugged_ = state;
    if (std::any_of(ends_.begin(), ends_.end(), [](const Port* port) {
            return port->attributes().held != PhysicalState::kLinkUp;
        })) {
        state = LinkState::kDown;
    }
    if (state == state_) {
        return;
    }
    state_ = state;
    services_.bus.emit(services_.loop.now(), LinkStateChanged{ends_[0]->node().id(), name_, state});
    if (state == LinkState::kDown) {
        for (LinkDirection& direction : directions_) {
            direction.drop_all(DropReason::kLinkDown);
        }
    }
    for (Port* const port : ends_) {
        const PortTrigger up = port->attributes().link_layer == LinkLayer::kEthernet
                                   ? PortTrigger::kCarrier
                                   : PortTrigger::kLinkUp;
        port->apply(state == LinkState::kUp ? up : PortTrigger::kLinkDown);
    }
    if (services_.observer != nullptr) {
        services_.observer->link_changed(*this);
    }
}

}  // namespace fabric
