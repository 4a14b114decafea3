#include "fabric/net/lane_queues.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"

namespace fabric {

LaneQueues::~LaneQueues() {
    SIMVERBS_ASSERT(frames_ == 0, "{} frames wait in a queue that goes", frames_);
}

void LaneQueues::enter(Lane& lane, const Frame& frame) {
    occupied_ |= 1U << frame.vl;
    ++frames_;
    bytes_ += frame.wire_bytes;
    lane.bytes += frame.wire_bytes;
}

void LaneQueues::push_back(FramePtr frame, SimTime ready) {
    Lane& lane = lanes_[frame->vl];
    enter(lane, *frame);
    frame->arrival = ready;
    Frame* const last = frame.release();
    if (lane.head == nullptr) {
        lane.head = last;
        lane.first_since = ready;
    } else {
        lane.tail->next = last;
    }
    lane.tail = last;
}

void LaneQueues::push_front(FramePtr frame, SimTime ready) {
    Lane& lane = lanes_[frame->vl];
    enter(lane, *frame);
    frame->arrival = ready;
    frame->next = lane.head;
    lane.head = frame.release();
    lane.first_since = ready;
    if (lane.tail == nullptr) {
        lane.tail = lane.head;
    }
}

FramePtr LaneQueues::pop_front(std::uint8_t number, SimTime now) {
    Lane& lane = lanes_[number];
    FramePtr frame(lane.head);
    lane.head = std::exchange(frame->next, nullptr);
    --frames_;
    bytes_ -= frame->wire_bytes;
    lane.bytes -= frame->wire_bytes;
    if (lane.head == nullptr) {
        lane.tail = nullptr;
        occupied_ &= ~(1U << number);
    } else {
        lane.first_since = std::max(now, lane.head->arrival);
    }
    return frame;
}

}  // namespace fabric
