#include "fabric/core/timer_wheel.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/core/event_heap.hpp"

namespace fabric {

namespace {
constexpr std::uint64_t bits_of(SimTime time) {
    return static_cast<std::uint64_t>(to_picoseconds(time));
}
}  // namespace

TimerWheel::~TimerWheel() {
    SIMVERBS_ASSERT(armed_count_ == 0, "{} armed timers outlive their loop", armed_count_);
}

void TimerWheel::arm(TimerEntry& entry, SimTime deadline, SimTime now) {
    // Nothing lies between elapsed_ and lower_bound_, so no entry's slot depends on the difference.
    if (now < lower_bound_) {
        elapsed_ = std::max(elapsed_, now);
    }
    if (entry.armed()) {
        if (entry.place == place_of(deadline) && entry.place < TimerEntry::kDue &&
            &entry != earliest_) {
            entry.event.time = deadline;  // the common case: a timeout pushed on a little
            if (earliest_ != nullptr && runs_before(entry.event, earliest_->event)) {
                earliest_ = &entry;
            }
            return;
        }
        take(entry);
    } else {
        ++armed_count_;
    }
    entry.event.time = deadline;
    put(entry);
}

void TimerWheel::cancel(TimerEntry& entry) {
    take(entry);
    --armed_count_;
}

std::optional<SimTime> TimerWheel::earliest() const {
    if (!due_.empty()) {
        return due_.front()->event.time;
    }
    if (occupied_levels_ == 0) {
        return std::nullopt;
    }
    if (earliest_ == nullptr) {
        const TimerEntry* const first = slots_[first_slot()];
        earliest_ = first;
        for (const TimerEntry* entry = first->next; entry != nullptr; entry = entry->next) {
            earliest_ = runs_before(entry->event, earliest_->event) ? entry : earliest_;
        }
    }
    return earliest_->event.time;
}

void TimerWheel::advance(SimTime limit) {
    while (due_.empty() && occupied_levels_ != 0 && lower_bound_ <= limit) {
        spread_first_slot();
    }
}

// Moves time to the start of the first slot; each entry goes at least one level down.
void TimerWheel::spread_first_slot() {
    const std::uint32_t place = first_slot();
    elapsed_ = slot_start(place);
    earliest_ = nullptr;
    TimerEntry* entry = std::exchange(slots_[place], nullptr);
    std::uint64_t& occupied = occupied_[place / kSlots];
    occupied &= ~(std::uint64_t{1} << place % kSlots);
    if (occupied == 0) {
        occupied_levels_ &= ~(1U << place / kSlots);
    }
    lower_bound_ = SimTime::max();
    while (entry != nullptr) {
        TimerEntry* const next = entry->next;
        put(*entry);
        entry = next;
    }
    refresh_lower_bound();
}

// kDue when the deadline lies in the tick reached.
std::uint32_t TimerWheel::place_of(SimTime deadline) const {
    SIMVERBS_ASSERT(deadline >= elapsed_, "a timer for {} ps is armed at {} ps",
                    to_picoseconds(deadline), to_picoseconds(elapsed_));
    const std::uint64_t ticks = bits_of(deadline) >> kTickBits;
    const std::uint64_t difference = ticks ^ bits_of(elapsed_) >> kTickBits;
    if (difference == 0) {
        return TimerEntry::kDue;
    }
    const auto level = static_cast<unsigned>(std::bit_width(difference) - 1) / kLevelBits;
    const auto slot = static_cast<unsigned>(ticks >> level * kLevelBits) % kSlots;
    return level * kSlots + slot;
}

SimTime TimerWheel::slot_start(std::uint32_t place) const {
    const unsigned shift = place / kSlots * kLevelBits;
    const std::uint64_t ticks = bits_of(elapsed_) >> kTickBits;
    const std::uint64_t above = ticks >> shift >> kLevelBits << kLevelBits;
    const std::uint64_t start = (above | place % kSlots) << shift << kTickBits;
    return SimTime(SimDuration(static_cast<std::int64_t>(start)));
}

std::uint32_t TimerWheel::first_slot() const {
    const auto level = static_cast<std::uint32_t>(std::countr_zero(occupied_levels_));
    return level * kSlots + static_cast<std::uint32_t>(std::countr_zero(occupied_[level]));
}

void TimerWheel::put(TimerEntry& entry) {
    const std::uint32_t place = place_of(entry.event.time);
    if (place == TimerEntry::kDue) {
        push_due(entry);
        return;
    }
    entry.place = place;
    entry.previous = nullptr;
    entry.next = std::exchange(slots_[place], &entry);
    if (entry.next != nullptr) {
        entry.next->previous = &entry;
    }
    occupied_[place / kSlots] |= std::uint64_t{1} << place % kSlots;
    occupied_levels_ |= 1U << place / kSlots;
    if (armed_count_ == 1 || (earliest_ != nullptr && runs_before(entry.event, earliest_->event))) {
        earliest_ = &entry;
    }
    lower_bound_ = std::min(lower_bound_, slot_start(place));
}

void TimerWheel::take(TimerEntry& entry) {
    const std::uint32_t place = std::exchange(entry.place, TimerEntry::kIdle);
    if ((place & TimerEntry::kDue) != 0) {
        remove_due(place & ~TimerEntry::kDue);
        refresh_lower_bound();
        return;
    }
    earliest_ = earliest_ == &entry ? nullptr : earliest_;
    (entry.previous != nullptr ? entry.previous->next : slots_[place]) = entry.next;
    if (entry.next != nullptr) {
        entry.next->previous = entry.previous;
    }
    if (slots_[place] == nullptr) {
        std::uint64_t& occupied = occupied_[place / kSlots];
        occupied &= ~(std::uint64_t{1} << place % kSlots);
        if (occupied == 0) {
            occupied_levels_ &= ~(1U << place / kSlots);
        }
        refresh_lower_bound();
    }
}

void TimerWheel::refresh_lower_bound() {
    if (!due_.empty()) {
        lower_bound_ = due_.front()->event.time;
    } else {
        lower_bound_ = occupied_levels_ == 0 ? SimTime::max() : slot_start(first_slot());
    }
}

void TimerWheel::push_due(TimerEntry& entry) {
    due_.push_back(&entry);
    settle_due(due_.size() - 1, entry);
    lower_bound_ = due_.front()->event.time;
}

void TimerWheel::remove_due(std::size_t index) {
    TimerEntry& last = *due_.back();
    due_.pop_back();
    if (index < due_.size()) {
        settle_due(index, last);
    }
}

// Puts `entry` where it belongs, starting from a free place at `index`.
void TimerWheel::settle_due(std::size_t index, TimerEntry& entry) {
    const auto place = [this](std::size_t at, TimerEntry& what) {
        due_[at] = &what;
        what.place = TimerEntry::kDue | static_cast<std::uint32_t>(at);
    };
    while (index > 0 && runs_before(entry.event, due_[(index - 1) / 2]->event)) {
        place(index, *due_[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    for (;;) {
        std::size_t child = 2 * index + 1;
        if (child >= due_.size()) {
            break;
        }
        if (child + 1 < due_.size() && runs_before(due_[child + 1]->event, due_[child]->event)) {
            ++child;
        }
        if (!runs_before(due_[child]->event, entry.event)) {
            break;
        }
        place(index, *due_[child]);
        index = child;
    }
    place(index, entry);
}

}  // namespace fabric
