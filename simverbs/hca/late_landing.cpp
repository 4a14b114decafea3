#include "simverbs/hca/late_landing.hpp"

#include <algorithm>

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/placement.hpp"

namespace simverbs {

LateLandings::~LateLandings() {
    for (Landing& landing : landings_) {
        landing.snapshot->release();
    }
}

CopyOutcome LateLandings::add(const Payload& from, AddressSpace& space,
                              std::span<const MemorySpan> spans, std::uint64_t offset,
                              fabric::SimDuration delay) {
    Snapshot& snapshot = hca_.snapshots().take();
    const CopyOutcome outcome = gather_payload(from, snapshot.bytes());
    if (outcome != CopyOutcome::kCopied) {
        snapshot.release();
        return outcome;
    }
    const fabric::EventKey key(fabric::EventClass::kTimer, hca_.node(), kTimerPlace, ++last_);
    fabric::EventHandler& handler = *this;
    Landing& landing = landings_.emplace_back(hca_.loop(), key, handler, last_);
    landing.snapshot = &snapshot;
    landing.from = snapshot.payload(hca_.own_memory(), from.length);
    landing.space = &space;
    landing.spans.assign(spans.begin(), spans.end());
    landing.offset = offset;
    landing.timer.arm_in(delay);
    return outcome;
}

void LateLandings::finish() {
    while (!landings_.empty()) {
        land(landings_.begin());
    }
}

void LateLandings::handle(const fabric::Event& event) {
    land(std::find_if(landings_.begin(), landings_.end(), [&event](const Landing& landing) {
        return landing.number == event.argument;
    }));
}

void LateLandings::land(std::list<Landing>::iterator landing) {
    place_payload(landing->from, *landing->space, landing->spans, landing->offset);
    landing->snapshot->release();
    landings_.erase(landing);
}

}  // namespace simverbs
