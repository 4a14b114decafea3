// Ethernet frames into receives: the receiving half of raw packets, of a queue pair or of a work
// queue. Nothing is acknowledged and no GRH is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simverbs/model/frame_offloads.hpp"
#include "simverbs/model/personality.hpp"
#include "simverbs/transport/engine_result.hpp"
#include "simverbs/transport/receive_effects.hpp"

namespace simverbs {

// An Ethernet frame that was steered to a queue, and what the device has found out about it.
struct ReceivedFrame {
    Payload payload;                   // from the destination address to the end of its data
    std::span<const std::byte> bytes;  // the same, where the device has them
    bool checksums_hold = false;       // IBV_WC_IP_CSUM_OK
    std::uint32_t flow_tag = 0;        // of the rule that it matched
};

class FrameReceiver {
  public:
    // `segments`: that a receive may have.
    FrameReceiver(const Personality& personality, std::uint32_t segments, FrameOffloads offloads,
                  ReceiveEffects& effects);
    FrameReceiver(const FrameReceiver&) = delete;
    FrameReceiver& operator=(const FrameReceiver&) = delete;

    EngineResult receive(const ReceivedFrame& frame);
    // For the frames that come from now on.
    void set_offloads(FrameOffloads offloads) { offloads_ = offloads; }
    [[nodiscard]] FrameOffloads offloads() const { return offloads_; }
    void flush();  // the receive that was taken for a frame before
    void reset() { has_receive_ = false; }

  private:
    bool take_receive();
    // How a frame lies in its receive.
    struct Placement {
        std::uint32_t length = 0;            // of all of it
        std::optional<std::uint16_t> cvlan;  // the tag that was taken out
    };
    [[nodiscard]] Placement placement_of(const ReceivedFrame& frame) const;
    bool place(const ReceivedFrame& frame, const Placement& placement,
               std::span<const Segment> segments);
    EngineResult refuse_receive(FaultCause cause);
    void complete_receive(ReceiveCompletion completion);

    const Personality& personality_;
    FrameOffloads offloads_;
    ReceiveEffects& effects_;
    RecvWqe receive_;
    std::uint32_t receive_index_ = 0;
    bool has_receive_ = false;  // taken, and not used by a frame that was too long
    std::vector<Segment> segments_;
    std::vector<MemorySpan> spans_;  // of the receive that a frame goes to
};

}  // namespace simverbs
