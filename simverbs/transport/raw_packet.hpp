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
#include "simverbs/transport/frame_receiver.hpp"
#include "simverbs/transport/qp_attributes.hpp"
#include "simverbs/transport/requester.hpp"

namespace simverbs {

class RawPacketEngine {
  public:
    RawPacketEngine(const QpAttributes& attributes, const Personality& personality,
                    const WorkQueueShape& send, std::uint32_t receive_segments,
                    FrameOffloads offloads, QpMemory memory, Effects& effects);
    RawPacketEngine(const RawPacketEngine&) = delete;
    RawPacketEngine& operator=(const RawPacketEngine&) = delete;

    // First request that is not complete.
    [[nodiscard]] std::uint32_t next() const { return next_; }

    // Commands of the queue pair.
    void post(std::uint32_t producer);  // work requests before this index exist
    EngineResult run();                 // send what may be sent
    void flush();                       // complete all sends that are left with WR_FLUSH_ERR
    void flush_receive() { receiver_.flush(); }
    void resize(const WorkQueueShape& shape) { shape_ = shape; }
    void reset();  // forget everything, complete nothing

    // A frame that flow steering gave to this queue pair.
    EngineResult receive(const ReceivedFrame& frame) { return receiver_.receive(frame); }

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
