// What a run says of itself: whether it would repeat itself, and why not.
#pragma once

#include <cstdint>
#include <string>

namespace simverbs {

// Why a run is not to be trusted to repeat itself.
struct RunMarks {
    std::uint64_t jumps_past_sleepers = 0;  // counted, not a mark
    bool endless = false;                   // a million events without a call; not a mark
    bool unnamed_actors_raced = false;
    std::string spun_on_memory;  // the first thread that did
    bool scheduled_free = false;
    bool changed_by_operator = false;  // `simverbs fabric`: by the wall clock

    // "deterministic", or which mark and why, and how often time jumped past sleepers.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] bool deterministic() const {
        return !unnamed_actors_raced && spun_on_memory.empty() && !scheduled_free &&
               !changed_by_operator;
    }
};

}  // namespace simverbs
