#include "fabric/faults/frame_actions.hpp"

#include <algorithm>
#include <utility>

namespace fabric {

ParkedFrames::~ParkedFrames() {
    for (const auto& [number, parked] : parked_) {
        clock_.cancel(parked.appointment);
    }
}

FramePtr ParkedFrames::copy(const Frame& frame) {
    FramePtr made = frame.pool->copy(frame);
    made->ingress = 0;
    keeper_.keep_payload(*made);
    return made;
}

void ParkedFrames::send(FramePtr frame, const LinkDirection& direction, SimTime now) {
    frame->is_past_filters = direction.has_filters();
    direction.from().send_at(std::move(frame), now);
}

bool ParkedFrames::park(const Frame& frame, const LinkDirection& direction, SimDuration duration) {
    if (parked_.size() >= kMost) {
        return false;
    }
    const std::uint64_t number = ++last_;
    FaultClock::Appointment appointment = 0;
    if (duration > SimDuration::zero()) {
        appointment = clock_.after(duration, [this, number] { release_one(number); });
    }
    parked_.emplace(number, Parked{copy(frame), &direction, appointment});
    return true;
}

void ParkedFrames::release_one(std::uint64_t number) {
    auto node = parked_.extract(number);
    send(std::move(node.mapped().frame), *node.mapped().direction, clock_.now());
}

void ParkedFrames::release() {
    while (!parked_.empty()) {
        clock_.cancel(parked_.begin()->second.appointment);
        release_one(parked_.begin()->first);
    }
}

void ParkedFrames::send_like(const Frame& frame, const LinkDirection& direction) {
    send(copy(frame), direction, clock_.now());
}

bool ParkedFrames::has_like(const Frame& frame, const LinkDirection& direction) const {
    return std::any_of(parked_.begin(), parked_.end(), [&](const auto& entry) {
        const Parked& parked = entry.second;
        return parked.direction == &direction && parked.frame->source == frame.source &&
               parked.frame->flow == frame.flow;
    });
}

Verdict DuplicateFrame::act(Frame& frame, const LinkDirection& direction) {
    for (std::uint64_t i = 0; i < times_; ++i) {
        if (interval_ == SimDuration::zero()) {
            parked_.send_like(frame, direction);
        } else {
            parked_.park(frame, direction, interval_ * static_cast<std::int64_t>(i + 1));
        }
    }
    return Verdict::kPass;
}

Verdict DelayFrame::act(Frame& frame, const LinkDirection& direction) {
    return parked_.park(frame, direction, delay_) ? Verdict::kTake : Verdict::kPass;
}

Verdict HoldFrame::act(Frame& frame, const LinkDirection& direction) {
    return parked_.park(frame, direction, duration_) ? Verdict::kTake : Verdict::kPass;
}

// One that waits already goes first: what is swapped is two neighbours.
Verdict ReorderFrame::act(Frame& frame, const LinkDirection& direction) {
    if (parked_.has_like(frame, direction)) {
        return pass(frame, direction);
    }
    return parked_.park(frame, direction, at_most_) ? Verdict::kTake : Verdict::kPass;
}

Verdict ReorderFrame::pass(Frame& frame, const LinkDirection& direction) {
    if (!parked_.has_like(frame, direction)) {
        return Verdict::kPass;
    }
    parked_.send_like(frame, direction);
    parked_.release();
    return Verdict::kTake;
}

}  // namespace fabric
