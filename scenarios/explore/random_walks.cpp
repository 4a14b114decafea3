#include "scenarios/explore/random_walks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/hash.hpp"

namespace scenarios {

namespace {

// Limits the walks that go side by side, which share the runs that they have in common.
constexpr std::size_t kAtOnce = 256;
// Limits how often a walk draws its last fault if it would end like another one.
constexpr int kDraws = 8;

std::string name_of(const std::vector<Choice>& choices) {
    std::string name;
    for (const Choice& choice : choices) {
        name += (choice.order ? choice.name : choice.fault) + "\n";
    }
    return name;
}

}  // namespace

RandomWalks::RandomWalks(const Choices& choices, const std::vector<Expansion>& starts,
                         unsigned depth, std::uint64_t count, std::uint64_t seed)
    : choices_(choices),
      starts_(starts),
      depth_(depth),
      count_(starts.empty() ? 0 : count),
      seed_(seed) {}

void RandomWalks::begin_some() {
    passed_.clear();
    for (; begun_ < count_ && walks_.size() < kAtOnce; ++begun_) {
        fabric::RandomStream random(seed_, fmt::format("walk {}", begun_), "faults");
        const Expansion& start = starts_[random.below(starts_.size())];
        const std::string name = name_of(start.choices);
        passed_.emplace(name, start.places);
        walks_.push_back({random, name, start.choices});
    }
}

std::vector<std::vector<Choice>> RandomWalks::next() {
    std::vector<std::vector<Choice>> branches;
    names_.clear();
    while (branches.empty()) {
        // Those that have failed or have all of their faults end here.
        std::erase_if(walks_, [this](const Walk& walk) {
            return walk.choices.size() == depth_ || !passed_.contains(walk.passed);
        });
        if (walks_.empty()) {
            begin_some();
        }
        if (walks_.empty()) {
            break;
        }
        std::vector<Walk> going;
        for (Walk& walk : walks_) {
            if (!add_fault(walk)) {
                continue;
            }
            if (!passed_.contains(walk.passed) &&
                std::ranges::find(names_, walk.passed) == names_.end()) {
                branches.push_back(walk.choices);
                names_.push_back(walk.passed);
            }
            going.push_back(std::move(walk));
        }
        walks_ = std::move(going);
    }
    return branches;
}

void RandomWalks::has_passed(std::size_t index, std::vector<Place> places) {
    passed_.emplace(names_[index], std::move(places));
}

// Returns false if the walk has no fault to add.
bool RandomWalks::add_fault(Walk& walk) {
    for (int i = 0; i < kDraws && draw(walk); ++i) {
        std::string name = name_of(walk.choices);
        if (walk.choices.size() < depth_ || ends_.insert(fabric::hash_name(name)).second) {
            walk.passed = std::move(name);
            return true;
        }
        walk.choices.pop_back();
    }
    return false;
}

// Draws a place behind the last fault, or the next one that has choices, and one of these.
bool RandomWalks::draw(Walk& walk) const {
    const std::vector<Place>& places = passed_.at(walk.passed);
    const std::size_t first = place_behind(walk.choices);
    const std::size_t count = places.size() - std::min(first, places.size());
    const std::size_t start = count == 0 ? 0 : walk.random.below(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t place = first + (start + i) % count;
        if (auto choices = choices_.at(place, places[place]); !choices.empty()) {
            walk.choices.push_back(std::move(choices[walk.random.below(choices.size())]));
            return true;
        }
    }
    return false;
}

}  // namespace scenarios
