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
    frames_ += frame.packets;
    bytes_ += total_wire_bytes(frame);
    lane.bytes += total_wire_bytes(frame);
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

FramePtr LaneQueues::pop_front(std::uint8_t lane, SimTime now) {
    return pop_train(lane, 1, now);
}

FramePtr LaneQueues::pop_train(std::uint8_t number, std::uint16_t packets, SimTime now) {
    Lane& lane = lanes_[number];
    FramePtr frame;
    if (lane.head->packets > packets) {
        frame = lane.head->pool->copy_first(*lane.head, packets);
        FramePool::drop_first(*lane.head, packets);
    } else {
        frame.reset(lane.head);
        lane.head = std::exchange(frame->next, nullptr);
    }
    frames_ -= frame->packets;
    bytes_ -= total_wire_bytes(*frame);
    lane.bytes -= total_wire_bytes(*frame);
    if (lane.head == nullptr) {
        lane.tail = nullptr;
        occupied_ &= ~(1U << number);
    } else {
        lane.first_since = std::max(now, lane.head->arrival);
    }
    return frame;
}

void LaneQueues::cut_trains() {
    for_each_occupied([this](std::uint8_t number) {
        Frame** link = &lanes_[number].head;
        while (*link != nullptr) {
            Frame* const frame = *link;
            if (frame->packets > 1) {
                Frame* const first = frame->pool->take_first(*frame).release();
                first->next = frame;
                *link = first;
            }
            link = &(*link)->next;
        }
    });
}

}  // namespace fabric
