#include "fabric/net/credits.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "fabric/core/assert.hpp"

namespace fabric {

std::uint32_t VlCredits::unused() const {
    return std::accumulate(
        returns_.begin() + static_cast<std::ptrdiff_t>(first_), returns_.end(), available_,
        [](std::uint32_t sum, const Return& entry) { return sum + entry.blocks; });
}

std::uint32_t VlCredits::returned_after(SimTime time) const {
    return std::accumulate(returns_.begin(), returns_.end(), 0U,
                           [time](std::uint32_t sum, const Return& entry) {
                               return sum + (entry.time > time ? entry.blocks : 0);
                           });
}

void VlCredits::undo(std::uint32_t blocks, SimTime time) {
    const auto found = std::find_if(returns_.rbegin(), returns_.rend(), [&](const Return& entry) {
        return entry.time == time && entry.blocks == blocks;
    });
    SIMVERBS_ASSERT(found != returns_.rend(), "no credits were to come back at {} ps",
                    to_picoseconds(time));
    const auto entry = std::prev(found.base());
    if (entry - returns_.begin() < static_cast<std::ptrdiff_t>(first_)) {
        --first_;
    } else {
        available_ += blocks;
    }
    returns_.erase(entry);
}

void VlCredits::rewind(SimTime time) {
    const auto counted = returns_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto later = std::stable_partition(
        returns_.begin(), counted, [time](const Return& entry) { return entry.time <= time; });
    available_ =
        std::accumulate(later, counted, available_,
                        [](std::uint32_t sum, const Return& entry) { return sum - entry.blocks; });
    first_ = static_cast<std::size_t>(later - returns_.begin());
    std::stable_sort(later, returns_.end(),
                     [](const Return& a, const Return& b) { return a.time < b.time; });
}

SimTime VlCredits::when(std::uint32_t blocks, SimTime at) const {
    std::uint32_t sum = available_;
    for (std::size_t i = first_; sum < blocks; ++i) {
        if (i == returns_.size()) {
            return SimTime::max();
        }
        sum += returns_[i].blocks;
        at = std::max(at, returns_[i].time);
    }
    return at;
}

void VlCredits::compact() {
    const std::size_t gone = first_ / 2 + 1;
    returns_.erase(returns_.begin(), returns_.begin() + static_cast<std::ptrdiff_t>(gone));
    first_ -= gone;
}

// Frames that leave a switch by different ports give back in another order than they came.
void VlCredits::sort_last() {
    const Return last = returns_.back();
    const auto begin = returns_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto place =
        std::upper_bound(begin, returns_.end() - 1, last,
                         [](const Return& a, const Return& b) { return a.time < b.time; });
    std::rotate(place, returns_.end() - 1, returns_.end());
}

}  // namespace fabric
