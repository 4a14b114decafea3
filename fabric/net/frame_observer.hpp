// Whoever wants to see frames themselves, where a trace has their names: a capture. Asked only
// while somebody wants events of packets, so that what is done for a trace of packets is done for
// it.
#pragma once

#include "fabric/core/sim_time.hpp"
#include "fabric/net/drop_reason.hpp"

namespace fabric {

class LinkDirection;
class Port;
struct Frame;

class FrameObserver {
  public:
    // The filters of a direction have seen the frame, which now is as they leave it.
    virtual void filtered(const Frame& frame) = 0;
    // It arrives now; its first bit left at `start`.
    virtual void delivered(const LinkDirection& direction, const Frame& frame, SimTime start) = 0;
    // It ends at `port`, which sent it or got it, now; what a fault took (kFault) has begun at
    // frame.arrival.
    virtual void dropped(const Port& port, const Frame& frame, DropReason reason) = 0;

  protected:
    ~FrameObserver() = default;
};

}  // namespace fabric
