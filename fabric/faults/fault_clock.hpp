// The actions of faults at a time of their own: release a frame, bring a link up again. Before
// anything else of its instant; what is due at once comes last in the instant that is running.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "fabric/core/event_loop.hpp"

namespace fabric {

class FaultClock final : private EventHandler {
  public:
    using Appointment = std::uint32_t;

    // The loop outlives the clock, which takes back what has not happened.
    explicit FaultClock(EventLoop& loop) : loop_(loop) {}
    ~FaultClock();
    FaultClock(const FaultClock&) = delete;
    FaultClock& operator=(const FaultClock&) = delete;

    [[nodiscard]] SimTime now() const { return loop_.now(); }
    // Not before now().
    Appointment at(SimTime time, std::function<void()> act);
    Appointment after(SimDuration delay, std::function<void()> act) {
        return at(now() + delay, std::move(act));
    }
    // No effect on what has happened already.
    void cancel(Appointment appointment);

  private:
    // Marks of the simulation have the number before this one (world/simulation.cpp).
    static constexpr NodeId kNode{EventKey::kMaxNode - 2};

    struct Due {
        SimTime time;
        EventKey key;
        std::function<void()> act;
    };

    void handle(const Event& event) override;

    EventLoop& loop_;
    std::map<Appointment, Due> due_;
    Appointment last_ = 0;
};

}  // namespace fabric
