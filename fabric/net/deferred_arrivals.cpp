#include "fabric/net/deferred_arrivals.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/link_direction.hpp"

namespace fabric {

bool DeferredArrivals::has_room_for(const TouchedMemories& touched) const {
    const auto end = deferred_.begin() + static_cast<std::ptrdiff_t>(count_);
    return count_ < kMost && std::none_of(deferred_.begin(), end, [&touched](const Deferred& one) {
               return one.touched.conflict_with(touched);
           });
}

void DeferredArrivals::add(LinkDirection& direction, const TouchedMemories& touched) {
    SIMVERBS_ASSERT(count_ < kMost, "{} trains are deferred", count_);
    deferred_[count_++] = {&direction, touched};
    loop_.follow(this);
}

// Keeps the order, in which they are settled.
void DeferredArrivals::remove(LinkDirection& direction) {
    const auto end = deferred_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found = std::find_if(deferred_.begin(), end, [&direction](const Deferred& one) {
        return one.direction == &direction;
    });
    SIMVERBS_ASSERT(found != end, "no train of {} is deferred", direction.from().number().value());
    std::move(found + 1, end, found);
    --count_;
    if (empty()) {
        loop_.follow(nullptr);
    }
}

void DeferredArrivals::add(LeftForLater& left) {
    SIMVERBS_ASSERT(left_ == nullptr || left_ == &left, "two hosts' things are left for later");
    left_ = &left;
    loop_.follow(this);
}

SimTime DeferredArrivals::next_arrival() const {
    SimTime next = SimTime::max();
    for (std::size_t i = 0; i < count_; ++i) {
        next = std::min(next, deferred_[i].direction->next_deferred_arrival());
    }
    return next;
}

// To settle one may settle others.
void DeferredArrivals::settle(const Node& node, const TouchedMemories& touched) {
    const auto is_meant = [&](const Deferred& one) {
        return &one.direction->to().node() == &node || one.touched.conflict_with(touched);
    };
    for (std::size_t i = 0; i < count_;) {
        if (is_meant(deferred_[i])) {
            deferred_[i].direction->settle();
            i = 0;
        } else {
            ++i;
        }
    }
}

void DeferredArrivals::settle_all() {
    while (count_ > 0) {
        deferred_[0].direction->settle();
    }
    if (left_ != nullptr) {
        std::exchange(left_, nullptr)->settle();
        loop_.follow(nullptr);
    }
}

void DeferredArrivals::before(const Event& event) {
    if (event.key.event_class() != EventClass::kFrameArrival &&
        !LinkDirection::is_wake(event.key) && !event.handler->tells_followers(event)) {
        settle_all();
    }
}

}  // namespace fabric
