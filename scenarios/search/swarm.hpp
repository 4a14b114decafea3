// Random faults for a scenario: any mix within a budget, all over by a time at which the fabric is
// sound again, so that everything must complete. The same seed gives the same faults.
//
// Only faults that a reliable service survives: packets lost, damaged, doubled, late or out of
// order, links and ports that pause or go away and come back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/core/outcome.hpp"

#include "scenarios/engine/scenario.hpp"

namespace scenarios {

struct SwarmOptions {
    static constexpr unsigned kMostFaults = 64;

    unsigned faults = 5;  // at most so many a run, at least one
    // Picoseconds of virtual time by which all of them are over; 0: a quarter of the least patience
    // (time-out times tries) of the scenario's connections, at most 20 ms.
    std::int64_t heal_ps = 0;
};

class Swarm {
  public:
    // `usual_ps`: how long the scenario takes without them. Fails where it has nothing that must
    // complete whatever happens.
    static fabric::Outcome<Swarm> make(const Scenario& scenario, const SwarmOptions& options,
                                       std::int64_t usual_ps);

    // The scenario with the faults of that seed, which is its own seed too.
    [[nodiscard]] Scenario scenario(std::uint64_t seed) const;
    [[nodiscard]] std::int64_t heal_ps() const { return heal_ps_; }

  private:
    struct Place {
        std::string link;
        std::vector<std::string> ends;
    };

    Swarm(const Scenario& scenario, unsigned faults);
    void find_places();
    [[nodiscard]] std::string fault_text(class Draw& draw, unsigned number) const;

    Scenario base_;  // with what must hold
    unsigned faults_;
    std::int64_t usual_ps_ = 0;
    std::int64_t heal_ps_ = 0;
    std::vector<std::string> hosts_;  // that have connections
    std::vector<Place> places_;       // links that they need
};

// Reduces expectations to those that hold however the run went: what it expects of data,
// completions and states, not of times, counters and events; and that no request fails with a
// status that it does not name.
void demand_completion(fabric::yaml::Value& root);

}  // namespace scenarios
