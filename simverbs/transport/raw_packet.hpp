// The engine of raw packets: a send is an Ethernet frame as it stands in memory, a receive takes
// one. Nothing is acknowledged: a send completes when its bytes have been taken.
//
// A send that is to be segmented (TSO) is as many frames as its data needs, and one completion.
// Refuses VLAN insertion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simverbs/model/personality.hpp"
#include "simverbs/transport/effects.hpp"
#include "simverbs/transport/engine.hpp"
#include "simverbs/transport/frame_receiver.hpp"
#include "simverbs/transport/qp_attributes.hpp"

namespace simverbs {

class RawPacketEngine final : public Engine {
  public:
    RawPacketEngine(const QpAttributes& attributes, const Personality& personality,
                    const WorkQueueShape& send, std::uint32_t receive_segments,
                    FrameOffloads offloads, QpMemory memory, Effects& effects);

    [[nodiscard]] EngineProgress progress() const override {
        return {.sends = posted_ - next_, .first_send = next_};
    }

    void post(std::uint32_t producer) override;
    EngineResult run() override;
    void flush_sends() override;
    void flush_receive() override { receiver_.flush(); }
    void resize(const WorkQueueShape& shape) override { shape_ = shape; }

    EngineResult receive_frame(const ReceivedFrame& frame,
                               const FrameHeaders& /*headers*/) override {
        return receiver_.receive(frame);
    }
    EngineResult timer_expired(EngineTimer /*timer*/) override { return run(); }

  private:
    struct Send {
        SendWqe wqe;
        WcStatus status = WcStatus::kSuccess;
        FaultCause cause = FaultCause::kSuccess;
        Payload frame;
        bool has_more = false;  // it is the next of several frames
    };
    bool send_next(EngineResult& failure);
    [[nodiscard]] bool waits_for_its_rate() const;
    [[nodiscard]] fabric::SimDuration gap_after(std::uint64_t bytes) const;
    Send fetch(std::uint32_t index);
    void gather(Send& send);
    void cut(Send& send);
    bool complete(const Send& send, std::uint32_t index);

    const QpAttributes& attributes_;
    const Personality& personality_;
    WorkQueueShape shape_;
    QpMemory memory_;
    Effects& effects_;
    std::uint32_t posted_ = 0;
    std::uint32_t next_ = 0;
    std::uint64_t cut_off_ = 0;      // of the data of the next send: in frames before
    std::uint64_t burst_bytes_ = 0;  // sent since the last gap
    std::vector<std::byte> tail_;    // of the send that is being looked at
    std::vector<MemorySpan> spans_;  // of it
    std::vector<std::byte> header_;  // of the frame that is cut from it
    std::vector<MemorySpan> parts_;
    FrameReceiver receiver_;
};

}  // namespace simverbs
