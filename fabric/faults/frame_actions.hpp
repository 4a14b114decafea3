// Actions on a frame that need not know what is in it: lose it, send it again, send it later.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "fabric/faults/fault_clock.hpp"
#include "fabric/faults/frame_fault.hpp"

namespace fabric {

// Makes a frame independent of its sender's memory (DESIGN section 6): implemented by whoever knows
// where payloads are.
class PayloadKeeper {
  public:
    virtual void keep_payload(Frame& frame) = 0;

  protected:
    ~PayloadKeeper() = default;
};

// Does nothing: its firing is all there is to it.
class MarkFrame final : public FrameAction {
  public:
    [[nodiscard]] std::string_view name() const override { return "mark"; }
    Verdict act(Frame& /*frame*/, const LinkDirection& /*direction*/) override {
        return Verdict::kPass;
    }
};

class DropFrame final : public FrameAction {
  public:
    [[nodiscard]] std::string_view name() const override { return "drop"; }
    Verdict act(Frame& /*frame*/, const LinkDirection& /*direction*/) override {
        return Verdict::kDrop;
    }
};

// Changes bits of the frame on the wire, as its check sequence there shows (VCRC, IBA 7.8.2): the
// port at the other end discards it and counts a symbol error and a receive error. It counts them
// when the frame is given to the link, too early by its time on the wire.
class SymbolError final : public FrameAction {
  public:
    [[nodiscard]] std::string_view name() const override { return "symbol_error"; }
    Verdict act(Frame& /*frame*/, const LinkDirection& direction) override {
        PortCounters& counters = direction.to().mutable_counters();
        ++counters.symbol_errors;
        ++counters.rcv_errors;
        return Verdict::kDrop;
    }
};

// Frames that were taken off their way, at the port that was to send them.
class ParkedFrames {
  public:
    // More at once than this are a mistake of who asks for it: they are not parked.
    static constexpr std::size_t kMost = 1U << 20;

    ParkedFrames(FaultClock& clock, PayloadKeeper& keeper) : clock_(clock), keeper_(keeper) {}
    ~ParkedFrames();
    ParkedFrames(const ParkedFrames&) = delete;
    ParkedFrames& operator=(const ParkedFrames&) = delete;

    // A frame like this one, until release() or for `duration` (zero: no end of it). False: too
    // many.
    bool park(const Frame& frame, const LinkDirection& direction, SimDuration duration);
    // All of them go on, in the order of their coming.
    void release();
    [[nodiscard]] bool empty() const { return parked_.empty(); }
    // A frame like this one goes on now, past all filters of its direction.
    void send_like(const Frame& frame, const LinkDirection& direction);
    // Returns true if one of the same flow is parked at the same place.
    [[nodiscard]] bool has_like(const Frame& frame, const LinkDirection& direction) const;

  private:
    struct Parked {
        FramePtr frame;
        const LinkDirection* direction;
        FaultClock::Appointment appointment;  // 0: none
    };

    FramePtr copy(const Frame& frame);
    static void send(FramePtr frame, const LinkDirection& direction, SimTime now);
    void release_one(std::uint64_t number);

    FaultClock& clock_;
    PayloadKeeper& keeper_;
    std::map<std::uint64_t, Parked> parked_;
    std::uint64_t last_ = 0;
};

// `times` more of it, the first at once with an interval of zero, each an interval behind the last.
class DuplicateFrame final : public FrameAction {
  public:
    DuplicateFrame(FaultClock& clock, PayloadKeeper& keeper, std::uint64_t times,
                   SimDuration interval)
        : parked_(clock, keeper), times_(times), interval_(interval) {}
    [[nodiscard]] std::string_view name() const override { return "duplicate"; }
    Verdict act(Frame& frame, const LinkDirection& direction) override;

  private:
    ParkedFrames parked_;
    std::uint64_t times_;
    SimDuration interval_;
};

// Later by a duration.
class DelayFrame final : public FrameAction {
  public:
    DelayFrame(FaultClock& clock, PayloadKeeper& keeper, SimDuration delay)
        : parked_(clock, keeper), delay_(delay) {}
    [[nodiscard]] std::string_view name() const override { return "delay"; }
    Verdict act(Frame& frame, const LinkDirection& direction) override;
    void release() override { parked_.release(); }

  private:
    ParkedFrames parked_;
    SimDuration delay_;
};

// When it is released, or after a duration if that is not zero.
class HoldFrame final : public FrameAction {
  public:
    HoldFrame(FaultClock& clock, PayloadKeeper& keeper, SimDuration duration)
        : parked_(clock, keeper), duration_(duration) {}
    [[nodiscard]] std::string_view name() const override { return "hold"; }
    Verdict act(Frame& frame, const LinkDirection& direction) override;
    void release() override { parked_.release(); }

  private:
    ParkedFrames parked_;
    SimDuration duration_;
};

// Behind the next frame of its flow, or after a duration if that is not zero.
class ReorderFrame final : public FrameAction {
  public:
    ReorderFrame(FaultClock& clock, PayloadKeeper& keeper, SimDuration at_most)
        : parked_(clock, keeper), at_most_(at_most) {}
    [[nodiscard]] std::string_view name() const override { return "reorder"; }
    Verdict act(Frame& frame, const LinkDirection& direction) override;
    Verdict pass(Frame& frame, const LinkDirection& direction) override;
    void release() override { parked_.release(); }

  private:
    ParkedFrames parked_;
    SimDuration at_most_;
};

}  // namespace fabric
