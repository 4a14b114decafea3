// The pending events in (time, key) order: the next ones in a heap, all others in slots by time.
//
// A heap of many events is slow: each sift goes through its whole depth. Events later than `near_`
// are appended to a slot instead, at the level of the highest digit in which their time differs
// from `near_` (the digits are of six bits, as in TimerWheel). When the near events have run, the
// first slot becomes a sorted row of near events; a slot of many is spread over lower levels
// before. So an event is moved a few times, whatever the number pending. With few events all are
// near.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/core/event.hpp"
#include "fabric/core/event_heap.hpp"

namespace fabric {

class EventQueue {
  public:
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] std::size_t size() const {
        return heap_.size() + static_cast<std::size_t>(row_end_ - row_next_) + later_count_;
    }

    // The earliest event; nullptr when there is none. Not while the top is open.
    [[nodiscard]] const Event* top() const {
        const Event* const of_heap = heap_.first();
        if (row_next_ == row_end_) {
            return of_heap;
        }
        return of_heap == nullptr || runs_before(*row_next_, *of_heap) ? row_next_ : of_heap;
    }

    // Takes top(), which is given. What is pushed before close_top() may take its place at less
    // cost.
    void open_top(const Event* top) {
        if (row_next_ != row_end_ && top == row_next_) {
            ++row_next_;
        } else {
            heap_.open_top();
        }
        if (near_ != SimTime::max() && row_next_ == row_end_ && heap_.empty()) {
            take_first_slot();
        }
    }
    void close_top() { heap_.close_top(); }

    // When the earliest event is due, or the earliest behind an open top; SimTime::max() when there
    // is none.
    [[nodiscard]] SimTime next_time() const {
        const SimTime first = heap_.top_is_open() ? heap_.time_behind_open_top() : heap_.top_time();
        return row_next_ != row_end_ && row_next_->time < first ? row_next_->time : first;
    }

    void push(const Event& event) {
        if (event.time > near_) {
            put_later(event);
        } else if (heap_.top_is_open()) {
            heap_.fill_top(event);
        } else {
            heap_.push(event);
            if (heap_.size() > crowd_) [[unlikely]] {
                thin_heap();
            }
        }
    }

    // Takes out the event of this time and key, wherever it is. False: none.
    bool remove(SimTime time, EventKey key);

  private:
    static constexpr unsigned kLevelBits = 6;
    static constexpr unsigned kSlots = 1U << kLevelBits;
    static constexpr unsigned kLevels = 11;  // 11 * 6 bits cover all of SimTime
    static constexpr std::size_t kPlaces = std::size_t{kLevels} * kSlots;
    static constexpr std::size_t kCrowd = 32;
    static constexpr std::size_t kThinned = 8;
    static constexpr std::size_t kMostSorted = 32;  // more are spread, unless they are in order

    [[nodiscard]] static unsigned level_of_difference(SimTime a, SimTime b);
    [[nodiscard]] std::size_t place_of(SimTime time) const;
    // Takes fields, which are in registers, for the reason that README.md tells.
    void put_later(SimTime time, EventKey key, EventHandler* handler, std::uint64_t argument);
    void put_later(const Event& event) {
        put_later(event.time, event.key, event.handler, event.argument);
    }
    void take_first_slot();
    void spread(std::size_t place);
    void take(std::size_t place);
    void leave(std::size_t place);
    void thin_heap();

    EventHeap heap_;          // near events that were pushed as such
    std::vector<Event> row_;  // near events of the slot that was taken, in order
    const Event* row_next_ = nullptr;
    const Event* row_end_ = nullptr;
    SimTime near_ = SimTime::max();   // later events are in slots; max: nothing is in slots
    std::size_t crowd_ = kCrowd;      // a larger heap is worth a look whether it can be thinned
    unsigned level_taken_ = kLevels;  // a slot below this level is empty
    std::size_t later_count_ = 0;
    std::uint32_t occupied_levels_ = 0;
    std::array<std::uint64_t, kLevels> occupied_{};  // a bit a slot
    std::vector<std::vector<Event>> slots_;          // none before they are needed
    std::vector<std::vector<Event>> spare_;          // storage of slots that were taken
};

}  // namespace fabric
