// Timers that are armed and re-armed with every message and almost never fire: a hierarchical wheel
// with O(1) arm, cancel and re-arm, and deadlines exact to the picosecond.
//
// A deadline lives at the level of the highest bit in which it differs from `elapsed_`; so a lower
// level always comes before a higher one, and the first occupied slot of the lowest occupied level
// holds the earliest timer. A slot is spread over lower levels when time reaches its start; entries
// of the tick reached wait in a small heap, in (time, key) order. Knows no clock: EventLoop drives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fabric/core/event.hpp"

namespace fabric {

// The wheel's part of a timer. Linked into the wheel while armed, so its address does not change.
struct TimerEntry {
    static constexpr std::uint32_t kIdle = 0xFFFF'FFFF;
    static constexpr std::uint32_t kDue = 0x8000'0000;  // the rest is the index in the due heap

    Event event{};
    TimerEntry* next = nullptr;
    TimerEntry* previous = nullptr;
    std::uint32_t place = kIdle;  // slot number, or kDue | index, or kIdle

    [[nodiscard]] bool armed() const { return place != kIdle; }
};

class TimerWheel {
  public:
    TimerWheel() = default;
    ~TimerWheel();
    TimerWheel(const TimerWheel&) = delete;
    TimerWheel& operator=(const TimerWheel&) = delete;

    // (Re-)arms for `deadline`, which is not before `now`.
    void arm(TimerEntry& entry, SimTime deadline, SimTime now);
    void cancel(TimerEntry& entry);

    [[nodiscard]] std::size_t armed_count() const { return armed_count_; }

    // Nothing fires before this; SimTime::max() when nothing is armed. Cheap, and not exact.
    [[nodiscard]] SimTime lower_bound() const { return lower_bound_; }

    // The earliest deadline exactly. Moves nothing; looks at one slot when no entry is due.
    [[nodiscard]] std::optional<SimTime> earliest() const;

    // Spreads every slot that starts at or before `limit` until the earliest entry is known to be
    // due or to lie beyond. Only for a caller that runs an event no earlier than lower_bound()
    // before it arms anything.
    void advance(SimTime limit);

    // The earliest entry that advance() made due; nullptr if there is none.
    [[nodiscard]] TimerEntry* due() const { return due_.empty() ? nullptr : due_.front(); }

  private:
    static constexpr unsigned kTickBits = 16;  // a tick is 65.536 ns
    static constexpr unsigned kLevelBits = 6;
    static constexpr unsigned kSlots = 1U << kLevelBits;
    static constexpr unsigned kLevels = 8;  // 16 + 8 * 6 bits cover all of SimTime
    static constexpr std::size_t kPlaces = std::size_t{kLevels} * kSlots;

    [[nodiscard]] std::uint32_t place_of(SimTime deadline) const;
    [[nodiscard]] SimTime slot_start(std::uint32_t place) const;
    [[nodiscard]] std::uint32_t first_slot() const;  // not when all are empty
    void put(TimerEntry& entry);
    void take(TimerEntry& entry);
    void spread_first_slot();
    void push_due(TimerEntry& entry);
    void remove_due(std::size_t index);
    void settle_due(std::size_t index, TimerEntry& entry);
    void refresh_lower_bound();

    std::array<TimerEntry*, kPlaces> slots_{};
    std::array<std::uint64_t, kLevels> occupied_{};  // a bit a slot
    std::uint32_t occupied_levels_ = 0;
    SimTime elapsed_{};  // no entry outside the due heap has a deadline in this tick or before
    SimTime lower_bound_ = SimTime::max();
    std::vector<TimerEntry*> due_;  // a binary heap by (time, key)
    std::size_t armed_count_ = 0;
    mutable const TimerEntry* earliest_ = nullptr;  // of those in slots, while that is known
};

}  // namespace fabric
