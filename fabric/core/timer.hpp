// A timer for as long as its owner lives: armed, re-armed and cancelled in O(1), fired in (time,
// key) order together with all other events. Give each timer that may share an instant with another
// a key of its own (class, node, port, sequence such as the queue pair's number).
#pragma once

#include <cstdint>

#include "fabric/core/event_loop.hpp"

namespace fabric {

class Timer {
  public:
    // `handler.handle()` gets an event with this key and argument. The loop outlives the timer.
    Timer(EventLoop& loop, EventKey key, EventHandler& handler, std::uint64_t argument = 0)
        : loop_(loop) {
        entry_.event = Event{SimTime{}, key, &handler, argument};
    }
    ~Timer() { cancel(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    // Fires once at `deadline`, instead of any earlier arrangement.
    void arm(SimTime deadline) {
        loop_.assert_in_order(deadline, entry_.event.key);
        loop_.wheel_.arm(entry_, deadline, loop_.now());
    }
    void arm_in(SimDuration delay) { arm(loop_.now() + delay); }

    void cancel() {
        if (entry_.armed()) {
            loop_.wheel_.cancel(entry_);
        }
    }

    [[nodiscard]] bool armed() const { return entry_.armed(); }

    // When it fires; only while armed.
    [[nodiscard]] SimTime deadline() const { return entry_.event.time; }

  private:
    EventLoop& loop_;
    TimerEntry entry_;
};

}  // namespace fabric
