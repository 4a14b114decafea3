// Draws runs with many faults, where all of them would be too many: walks that add one fault after
// the other, each behind those before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fabric/core/random.hpp"

#include "scenarios/explore/choice.hpp"

namespace scenarios {

// A branch that passed, with the places of its run.
struct Expansion {
    std::vector<Choice> choices{};
    std::vector<Place> places{};
};

class RandomWalks {
  public:
    // Each of `count` walks begins with one of `starts`, and ends when it has `depth` faults. Keeps
    // references to `choices` and `starts`.
    RandomWalks(const Choices& choices, const std::vector<Expansion>& starts, unsigned depth,
                std::uint64_t count, std::uint64_t seed);

    // Returns the faults of the branches to be run next, each once. Empty: all walks have ended.
    // Draws the same from a seed where the same branches pass.
    std::vector<std::vector<Choice>> next();

    // The branch at `index` of the last next() has passed: walks with its faults go on from there.
    void has_passed(std::size_t index, std::vector<Place> places);

  private:
    struct Walk {
        fabric::RandomStream random;
        std::string passed;  // its faults so far, a key of passed_
        std::vector<Choice> choices;
    };

    void begin_some();
    bool add_fault(Walk& walk);
    [[nodiscard]] bool draw(Walk& walk) const;

    const Choices& choices_;
    const std::vector<Expansion>& starts_;
    unsigned depth_;
    std::uint64_t count_;
    std::uint64_t seed_;
    std::uint64_t begun_ = 0;
    std::vector<Walk> walks_;
    std::vector<std::string> names_;                    // of the branches of the last next()
    std::map<std::string, std::vector<Place>> passed_;  // by the names of their faults
    std::set<std::uint64_t> ends_;  // the faults that walks ended with, by a hash
};

}  // namespace scenarios
