#include "simverbs/hca/loopback.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/node.hpp"

namespace simverbs {

Loopback::Loopback(fabric::EventLoop& loop, fabric::Port& port, LoopbackListener& listener)
    : loop_(loop), port_(port), listener_(listener) {}

Loopback::~Loopback() {
    while (head_ != nullptr) {
        const fabric::FramePtr frame(std::exchange(head_, head_->next));
    }
}

fabric::SimTime Loopback::free_at() const {
    return std::max(busy_until_, loop_.now());
}

void Loopback::send(fabric::FramePtr frame) {
    SIMVERBS_ASSERT(frame->packets == 1, "a train of {} loops back", frame->packets);
    if (port_.state() != fabric::PortState::kActive) {
        port_.drop(std::move(frame), fabric::DropReason::kPortNotActive);
        return;
    }
    const fabric::PortAttributes& own = port_.attributes();
    const fabric::Rate rate = fabric::effective_rate(own.width, own.speed);
    busy_until_ = free_at() + rate.transmission_time(frame->wire_bytes);
    frame->arrival = busy_until_ + kDelay;
    frame->next = nullptr;
    fabric::Frame* const added = frame.release();
    if (head_ == nullptr) {
        head_ = tail_ = added;
        schedule_head();
    } else {
        tail_->next = added;
        tail_ = added;
    }
}

// The sequence tells these arrivals from those of the port's link.
void Loopback::schedule_head() {
    const fabric::EventKey key(fabric::EventClass::kFrameArrival, port_.node().id(), port_.number(),
                               1);
    loop_.schedule({head_->arrival, key, this, 0});
}

void Loopback::handle(const fabric::Event& /*event*/) {
    fabric::FramePtr frame(std::exchange(head_, head_->next));
    if (head_ != nullptr) {
        schedule_head();
    }
    listener_.looped_back(port_, std::move(frame));
}

}  // namespace simverbs
