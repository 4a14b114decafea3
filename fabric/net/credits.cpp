#include "fabric/net/credits.hpp"

#include <numeric>

namespace fabric {

std::uint32_t VlCredits::unused() const {
    return std::accumulate(
        returns_.begin() + static_cast<std::ptrdiff_t>(first_), returns_.end(), available_,
        [](std::uint32_t sum, const Return& entry) { return sum + entry.blocks; });
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
    returns_.erase(returns_.begin(), returns_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
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
