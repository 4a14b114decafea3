#include "fabric/core/event_queue.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"

namespace fabric {

namespace {

std::uint64_t number_of(SimTime time) {
    return static_cast<std::uint64_t>(to_picoseconds(time));
}

SimTime time_of(std::uint64_t picoseconds) {
    return SimTime(SimDuration(static_cast<std::int64_t>(picoseconds)));
}

}  // namespace

// 0 for equal times, too.
unsigned EventQueue::level_of_difference(SimTime a, SimTime b) {
    const std::uint64_t difference = (number_of(a) ^ number_of(b)) | 1;
    return static_cast<unsigned>(std::bit_width(difference) - 1) / kLevelBits;
}

std::size_t EventQueue::place_of(SimTime time) const {
    const std::size_t level = level_of_difference(time, near_);
    return level * kSlots + (number_of(time) >> level * kLevelBits) % kSlots;
}

void EventQueue::put_later(SimTime time, EventKey key, EventHandler* handler,
                           std::uint64_t argument) {
    const std::size_t place = place_of(time);
    std::vector<Event>& slot = slots_[place];
    if (slot.empty()) {
        occupied_[place / kSlots] |= std::uint64_t{1} << place % kSlots;
        occupied_levels_ |= 1U << place / kSlots;
        if (!spare_.empty()) {
            slot = std::move(spare_.back());
            spare_.pop_back();
        }
    }
    Event& event = slot.emplace_back();
    event.time = time;
    event.key = key;
    event.handler = handler;
    event.argument = argument;
    ++later_count_;
}

// Notes that a slot is empty.
void EventQueue::leave(std::size_t place) {
    std::uint64_t& occupied = occupied_[place / kSlots];
    occupied &= ~(std::uint64_t{1} << place % kSlots);
    if (occupied == 0) {
        occupied_levels_ &= ~(1U << place / kSlots);
    }
}

void EventQueue::take_first_slot() {
    crowd_ = kCrowd;
    if (later_count_ == 0) {
        near_ = SimTime::max();
        level_taken_ = kLevels;
        return;
    }
    for (;;) {
        SIMVERBS_ASSERT(occupied_levels_ != 0, "{} events are in no slot", later_count_);
        const auto level = static_cast<std::size_t>(std::countr_zero(occupied_levels_));
        const std::size_t place =
            level * kSlots + static_cast<std::size_t>(std::countr_zero(occupied_[level]));
        const std::vector<Event>& slot = slots_[place];
        if (level == 0 || slot.size() <= kMostSorted ||
            std::is_sorted(slot.begin(), slot.end(), runs_before)) {
            take(place);
            return;
        }
        spread(place);
    }
}

// Each event of the slot goes at least one level down.
void EventQueue::spread(std::size_t place) {
    leave(place);
    std::vector<Event> events = std::move(slots_[place]);
    slots_[place] = {};
    later_count_ -= events.size();
    const std::size_t shift = place / kSlots * kLevelBits;
    near_ = time_of(number_of(events.front().time) >> shift << shift);
    for (const Event& event : events) {
        put_later(event);
    }
    events.clear();
    spare_.push_back(std::move(events));
}

void EventQueue::take(std::size_t place) {
    leave(place);
    row_.clear();
    row_.swap(slots_[place]);
    if (slots_[place].capacity() != 0) {
        spare_.push_back(std::exchange(slots_[place], {}));
    }
    later_count_ -= row_.size();
    if (!std::is_sorted(row_.begin(), row_.end(), runs_before)) {
        std::sort(row_.begin(), row_.end(), runs_before);
    }
    row_next_ = row_.data();
    row_end_ = row_next_ + row_.size();
    level_taken_ = static_cast<unsigned>(place / kSlots);
    const unsigned shift = level_taken_ * kLevelBits;
    near_ = time_of(number_of(row_.front().time) | ((std::uint64_t{1} << shift) - 1));
}

// Moves all but the first events to slots, if these are below the slot that was taken last: nothing
// is there, so nothing else has another place under the new `near_`. And an event only goes down.
void EventQueue::thin_heap() {
    const std::vector<Event>& events = heap_.sort();
    const SimTime near = events[kThinned - 1].time;
    crowd_ = 2 * events.size();
    if (level_taken_ != kLevels && level_of_difference(near, near_) >= level_taken_) {
        return;
    }
    slots_.resize(kPlaces);
    level_taken_ = 0;
    near_ = near;
    const auto is_near = [near](const Event& event) { return event.time <= near; };
    const auto first_later = std::partition_point(events.begin(), events.end(), is_near);
    std::for_each(first_later, events.end(), [this](const Event& event) { put_later(event); });
    heap_.shorten(static_cast<std::size_t>(first_later - events.begin()));
    const Event* const row_end = std::partition_point(row_next_, row_end_, is_near);
    std::for_each(row_end, row_end_, [this](const Event& event) { put_later(event); });
    row_end_ = row_end;
    crowd_ = std::max(kCrowd, 2 * heap_.size());
}

bool EventQueue::remove(SimTime time, EventKey key) {
    const auto is_meant = [&](const Event& event) {
        return event.time == time && event.key == key;
    };
    if (time > near_) {
        const std::size_t place = place_of(time);
        std::vector<Event>& slot = slots_[place];
        const auto found = std::find_if(slot.begin(), slot.end(), is_meant);
        if (found == slot.end()) {
            return false;
        }
        slot.erase(found);
        --later_count_;
        if (slot.empty()) {
            leave(place);
        }
        return true;
    }
    const auto next = row_.begin() + (row_next_ - row_.data());
    const auto end = row_.begin() + (row_end_ - row_.data());
    const auto found = std::find_if(next, end, is_meant);
    if (found != end) {
        std::move_backward(next, found, found + 1);
        ++row_next_;
    } else if (!heap_.remove(time, key)) {
        return false;
    }
    if (row_next_ == row_end_ && heap_.empty()) {
        take_first_slot();
    }
    return true;
}

}  // namespace fabric
