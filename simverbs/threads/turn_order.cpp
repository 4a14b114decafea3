#include "simverbs/threads/turn_order.hpp"

#include <algorithm>

namespace simverbs {
namespace {

// Changes of priority are at turns below 2^kLongest.
constexpr std::uint64_t kLongest = 13;

enum class Purpose : std::uint64_t { kFabric, kActor, kChanges, kMagnitude, kPlace };

std::uint64_t draw(std::uint64_t seed, Purpose purpose, std::uint64_t number) {
    fabric::WordsHash hash;
    hash.add(seed);
    hash.add(static_cast<std::uint64_t>(purpose));
    hash.add(number);
    return hash.draw();
}

// Priorities before any change have the highest bit set.
std::uint64_t priority_of(std::uint64_t drawn) {
    return drawn | 1ULL << 63U;
}

}  // namespace

TurnOrder::TurnOrder(std::uint64_t seed)
    : seed_(seed), fabric_(priority_of(draw(seed, Purpose::kFabric, 0))) {
    const std::uint64_t changes = draw(seed, Purpose::kChanges, 0) % (kMostChanges + 1);
    for (std::uint64_t i = 0; i < changes; ++i) {
        const std::uint64_t first = 1ULL << draw(seed, Purpose::kMagnitude, i) % kLongest;
        changes_[i] = first + draw(seed, Purpose::kPlace, i) % first;
    }
}

void TurnOrder::take(Actor& actor) const {
    fabric::WordsHash path;
    for (const std::uint32_t child : actor.thread->path) {
        path.add(child);
    }
    path.add(actor.thread->is_announced ? 0 : actor.rank + 1);
    actor.priority = priority_of(draw(seed_, Purpose::kActor, path.draw()));
}

Actor* TurnOrder::highest(std::span<Actor* const> candidates, bool fabric_may_act) const {
    Actor* const first = *std::ranges::max_element(candidates, {}, &Actor::priority);
    return fabric_may_act && fabric_ > first->priority ? nullptr : first;
}

Actor* TurnOrder::choose(std::span<Actor* const> candidates, bool fabric_may_act) {
    Actor* chosen = highest(candidates, fabric_may_act);
    if (candidates.size() + (fabric_may_act ? 1 : 0) == 1) {
        return chosen;
    }
    ++turns_;
    if (std::ranges::find(changes_, turns_) != changes_.end()) {
        (chosen == nullptr ? fabric_ : chosen->priority) = --lowest_;
        chosen = highest(candidates, fabric_may_act);
    }
    digest_.add(chosen == nullptr ? 0 : chosen->rank + std::uint64_t{1});
    return chosen;
}

}  // namespace simverbs
