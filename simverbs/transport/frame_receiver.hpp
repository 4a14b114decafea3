// Ethernet frames into receives: the receiving half of raw packets, of a queue pair or of a work
// queue. Nothing is acknowledged and no GRH is written.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simverbs/model/personality.hpp"
#include "simverbs/transport/effects.hpp"

namespace simverbs {

class FrameReceiver {
  public:
    // `segments`: that a receive may have.
    FrameReceiver(const Personality& personality, std::uint32_t segments, ReceiveEffects& effects);
    FrameReceiver(const FrameReceiver&) = delete;
    FrameReceiver& operator=(const FrameReceiver&) = delete;

    void receive(const Payload& frame, bool checksums_hold);
    void flush();  // the receive that was taken for a frame before
    void reset() { has_receive_ = false; }

  private:
    bool take_receive();
    bool place(const Payload& frame, std::span<const Segment> segments);
    void refuse_receive(FaultCause cause);
    void complete_receive(ReceiveCompletion completion);

    const Personality& personality_;
    ReceiveEffects& effects_;
    RecvWqe receive_;
    std::uint32_t receive_index_ = 0;
    bool has_receive_ = false;  // taken, and not used by a frame that was too long
    std::vector<Segment> segments_;
    std::vector<MemorySpan> spans_;  // of the receive that a frame goes to
};

}  // namespace simverbs
