#include "fabric/core/event_heap.hpp"

#include <algorithm>

namespace fabric {

SimTime EventHeap::time_behind_open_top() const {
    SimTime earliest = SimTime::max();
    const std::size_t end = std::min(events_.size(), kArity + 1);
    for (std::size_t child = 1; child < end; ++child) {
        earliest = std::min(earliest, events_[child].time);
    }
    return earliest;
}

bool EventHeap::remove(SimTime time, EventKey key) {
    const auto begin = events_.begin() + (top_is_open_ ? 1 : 0);
    const auto found = std::find_if(begin, events_.end(), [&](const Event& event) {
        return event.time == time && event.key == key;
    });
    if (found == events_.end()) {
        return false;
    }
    const auto hole = static_cast<std::size_t>(found - events_.begin());
    const Event last = events_.back();
    events_.pop_back();
    if (hole == events_.size()) {
        return true;
    }
    // An open top is no obstacle: its event, still there, runs before all others.
    if (hole > 0 && runs_before(last, events_[(hole - 1) / kArity])) {
        sift_up(hole, last);
    } else {
        sift_down(hole, last);
    }
    return true;
}

const std::vector<Event>& EventHeap::sort() {
    std::sort(events_.begin(), events_.end(), runs_before);
    return events_;
}

}  // namespace fabric
