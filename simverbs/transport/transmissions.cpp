#include "simverbs/transport/transmissions.hpp"

#include <algorithm>
#include <limits>

namespace simverbs {

void Transmissions::start(Psn first) {
    begin_ = end_ = highest_ = first;
    runs_.clear();
}

std::uint16_t Transmissions::count(Psn psn) const {
    const auto contains = [psn](Psn begin, Psn end) {
        return distance(begin, psn) >= 0 && distance(psn, end) > 0;
    };
    std::uint32_t before = contains(begin_, end_) ? 1 : 0;
    for (const Run& run : runs_) {
        before += contains(run.begin, run.end) ? run.times : 0U;
    }
    return static_cast<std::uint16_t>(
        std::min<std::uint32_t>(before + 1, std::numeric_limits<std::uint16_t>::max()));
}

// Starts a new run, unless `psn` continues the current run beyond everything that was sent.
void Transmissions::go_to(Psn psn) {
    const bool is_new = distance(highest_, psn) > 0;
    if (is_new && end_ == highest_) {
        return;
    }
    if (!runs_.empty() && runs_.back().begin == begin_ && runs_.back().end == end_) {
        ++runs_.back().times;
    } else {
        runs_.push_back({begin_, end_, 1});
        if (runs_.size() > kMostRuns) {
            runs_.erase(runs_.begin());
        }
    }
    begin_ = is_new ? highest_ : psn;
}

}  // namespace simverbs
