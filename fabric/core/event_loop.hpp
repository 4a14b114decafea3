// The event loop: the only owner of virtual time. The clock is the time of the last event; with
// nothing pending it does not move, and a cancelled timer never moves it. Single-threaded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/core/assert.hpp"
#include "fabric/core/event.hpp"
#include "fabric/core/event_queue.hpp"
#include "fabric/core/timer_wheel.hpp"

namespace fabric {

class EventLoop {
  public:
    EventLoop() = default;
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    [[nodiscard]] SimTime now() const { return now_; }

    // Not before now(). At now(), an event that runs may schedule into its own class or a later
    // one; what belongs to an earlier class is called directly.
    void schedule(const Event& event) {
        assert_in_order(event.time, event.key);
        queue_.push(event);
    }

    // Takes back a scheduled event, as if it had never been. Costs a look at many pending events:
    // for the rare case; what is usually cancelled is a Timer. False: there is no such event.
    bool cancel(SimTime time, EventKey key) { return queue_.remove(time, key); }

    // Neither an event nor an armed timer is left.
    [[nodiscard]] bool empty() const { return pending() == 0; }
    [[nodiscard]] std::size_t pending() const { return queue_.size() + wheel_.armed_count(); }

    // When the next event or timer is due, exactly. Moves nothing.
    [[nodiscard]] std::optional<SimTime> next_time() const;

    // Runs every event of the next instant, those included that it schedules at that instant,
    // unless it is after `latest`. Returns how many ran; 0 when nothing is due by then.
    std::size_t run_instant(SimTime latest = SimTime::max());

    // Runs every event due at or before `limit`; now() is then the time of the last one, not
    // `limit`. Returns how many ran.
    std::uint64_t run_until(SimTime limit);

    // For the event that runs, which knows what comes next of its own: until when nothing else
    // happens, and that what it does from here on is of a later time, before horizon().
    [[nodiscard]] SimTime horizon() const {
        return std::min(next_time().value_or(SimTime::max()), limit_);
    }
    void advance(SimTime time) {
        SIMVERBS_ASSERT(running_ && time >= now_ && time < horizon(),
                        "time moves to {} ps inside an event at {} ps", to_picoseconds(time),
                        to_picoseconds(now_));
        now_ = time;
    }

    // For the event that runs: what is due from here on is not run before somebody has a turn.
    [[nodiscard]] SimTime limit() const { return limit_; }

    // nullptr: nobody follows.
    void follow(EventFollower* follower) { follower_ = follower; }

    // While it lives, what is done is done as of an earlier time: timers are armed from there.
    class AsOf {
      public:
        AsOf(EventLoop& loop, SimTime time) : loop_(loop), now_(loop.now_) {
            SIMVERBS_ASSERT(time <= now_, "{} ps is later than now, {} ps", to_picoseconds(time),
                            to_picoseconds(now_));
            loop.now_ = time;
        }
        ~AsOf() { loop_.now_ = now_; }
        AsOf(const AsOf&) = delete;
        AsOf& operator=(const AsOf&) = delete;

      private:
        EventLoop& loop_;
        SimTime now_;
    };

    // Returns true if an event of `key` at `time`, had there been one, would have run by now. While
    // an event runs, its own key counts as run.
    [[nodiscard]] bool is_past(SimTime time, EventKey key) const {
        return time < now_ || (time == now_ && (!running_ || key <= last_key_));
    }

    // Returns true if nothing but frames moved in the last instant.
    [[nodiscard]] bool only_frames_moved() const { return only_frames_moved_; }

    // Events run since the start.
    [[nodiscard]] std::uint64_t events_run() const { return events_run_; }

  private:
    friend class Timer;

    void assert_in_order(SimTime time, EventKey key) const {
        SIMVERBS_ASSERT(time > now_ || (time == now_ && (!running_ || key.event_class() >=
                                                                          last_key_.event_class())),
                        "an event of class {} for {} ps is scheduled at {} ps, class {}",
                        static_cast<int>(key.event_class()), to_picoseconds(time),
                        to_picoseconds(now_), static_cast<int>(last_key_.event_class()));
    }

    static constexpr SimTime after(SimTime latest) {
        return latest == SimTime::max() ? latest : latest + SimDuration(1);
    }
    bool run_one(SimTime limit);
    [[nodiscard]] TimerEntry* timer_before(SimTime top, SimTime limit);
    void dispatch(SimTime time, EventKey key, EventHandler* handler, std::uint64_t argument);

    // A key that no event has: topologies are smaller than this node number.
    static constexpr EventKey kNoKey{EventClass::kApplication, NodeId{EventKey::kMaxNode},
                                     PortNumber{EventKey::kMaxPort}, 0xFFFF'FFFFU};
    static constexpr std::size_t kMaxEventsPerInstant = 1U << 27;

    SimTime now_{};
    EventKey last_key_ = kNoKey;
    SimTime limit_ = SimTime::max();  // nothing is to happen from here on
    bool running_ = false;            // a handler is on the stack
    bool only_frames_moved_ = false;
    EventFollower* follower_ = nullptr;
    EventQueue queue_;
    TimerWheel wheel_;
    std::uint64_t events_run_ = 0;
};

}  // namespace fabric
