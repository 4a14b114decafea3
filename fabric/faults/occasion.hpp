// Selects when a fault fires: a time window, a place in the order, a number of times, a
// probability.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "fabric/core/random.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/faults/fault_events.hpp"

namespace fabric {

inline constexpr std::uint64_t kEveryTime = UINT64_MAX;

struct OccasionRules {
    SimTime from{};                  // nothing before
    SimTime until = SimTime::max();  // nothing at or after
    std::uint64_t nth = 1;           // the first that may be hit, from 1
    std::uint64_t count = 1;         // how often; kEveryTime: no end
    Ratio chance{1, 1};              // of each
    std::uint64_t seed = 0;
};

class Occasion {
  public:
    Occasion(FaultId id, const OccasionRules& rules) : id_(id), rules_(rules) {}

    // Nothing counts while it sleeps.
    void sleep() { is_awake_ = false; }
    void wake() { is_awake_ = true; }

    // Something matched, of `flow`, at `point`: whether the fault happens to it. The draw is a hash
    // of seed, fault, point, flow and its number in that flow there.
    [[nodiscard]] bool arrives(SimTime now, std::uint64_t point, std::uint64_t flow);

    [[nodiscard]] std::uint64_t seen() const { return seen_; }
    [[nodiscard]] std::uint64_t fired() const { return fired_; }
    [[nodiscard]] bool is_over() const { return fired_ >= rules_.count; }
    [[nodiscard]] const OccasionRules& rules() const { return rules_; }

  private:
    [[nodiscard]] bool draw(std::uint64_t point, std::uint64_t flow);

    FaultId id_;
    OccasionRules rules_;
    bool is_awake_ = true;
    std::uint64_t seen_ = 0;
    std::uint64_t fired_ = 0;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> draws_;
};

}  // namespace fabric
