// A 4-ary heap of plain events in (time, key) order. Four children share two cache lines and the
// tree is half as deep as a binary one. The top can be left open while its event runs, so that the
// handler's first new event takes its place: one sift instead of two.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "fabric/core/assert.hpp"
#include "fabric/core/event.hpp"
#include "fabric/core/hash.hpp"

namespace fabric {

// Compares (time, key) as one 128-bit number: no branch between the two. Times are not negative.
inline detail::Uint128 order_of(const Event& event) {
    return static_cast<detail::Uint128>(to_picoseconds(event.time)) << 64 | event.key.packed();
}
inline bool runs_before(const Event& a, const Event& b) {
    return order_of(a) < order_of(b);
}

class EventHeap {
  public:
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] std::size_t size() const { return events_.size() - (top_is_open_ ? 1 : 0); }

    // nullptr when there is none. Not while the top is open.
    [[nodiscard]] const Event* first() const { return events_.empty() ? nullptr : events_.data(); }
    [[nodiscard]] SimTime top_time() const {
        return events_.empty() ? SimTime::max() : events_.front().time;
    }

    // Leaves the place of the earliest event open until fill_top() or close_top().
    void open_top() { top_is_open_ = true; }
    void fill_top(const Event& event) {
        top_is_open_ = false;
        sift_down(0, event);
    }

    // Not while the top is open.
    void push(const Event& event) {
        events_.emplace_back();
        sift_up(events_.size() - 1, event);
    }

    void close_top() {
        if (!top_is_open_) {
            return;
        }
        top_is_open_ = false;
        const Event last = events_.back();
        events_.pop_back();
        if (!events_.empty()) {
            sift_down(0, last);
        }
    }

    // The earliest event behind an open top; SimTime::max() when there is none.
    [[nodiscard]] SimTime time_behind_open_top() const;

    [[nodiscard]] bool top_is_open() const { return top_is_open_; }

    // Takes out the event of this time and key, wherever it is; looks at all of them. False: none.
    bool remove(SimTime time, EventKey key);

    // Puts all into order (in order, they still are a heap). Not while the top is open.
    const std::vector<Event>& sort();
    // Keeps the first `count` only.
    void shorten(std::size_t count) {
        events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(count), events_.end());
    }

  private:
    static constexpr std::size_t kArity = 4;

    void sift_up(std::size_t hole, const Event& event);
    void sift_down(std::size_t hole, const Event& event);

    std::vector<Event> events_;
    bool top_is_open_ = false;
};

// Both fill the free place `hole` with `event`, after moving others out of its way.
inline void EventHeap::sift_up(std::size_t hole, const Event& event) {
    while (hole > 0) {
        const std::size_t parent = (hole - 1) / kArity;
        if (!runs_before(event, events_[parent])) {
            break;
        }
        events_[hole] = events_[parent];
        hole = parent;
    }
    events_[hole] = event;
}

inline void EventHeap::sift_down(std::size_t hole, const Event& event) {
    const std::size_t count = events_.size();
    for (;;) {
        const std::size_t first = hole * kArity + 1;
        if (first >= count) {
            break;
        }
        const std::size_t end = first + kArity < count ? first + kArity : count;
        std::size_t least = first;
        for (std::size_t child = first + 1; child < end; ++child) {
            least = runs_before(events_[child], events_[least]) ? child : least;
        }
        if (!runs_before(events_[least], event)) {
            break;
        }
        events_[hole] = events_[least];
        hole = least;
    }
    events_[hole] = event;
}

}  // namespace fabric
