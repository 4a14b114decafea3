// Notices a run in which nothing happens any more but requests that a receiver refuses, since it
// has no receive posted, and that rnr_retry 7 repeats for ever. Judges by records, whose order and
// time are virtual.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/engine/observation.hpp"

namespace scenarios {

class World;

class EndlessRetries {
  public:
    void see(const Record& record);
    // Requests have been refused and repeated kEnough times, and nothing else was seen in between.
    [[nodiscard]] bool are_many() const { return refused_ >= kEnough; }
    // Returns true if they have been many before, too, and faults have matched nothing since;
    // `fault_matches` is how much they have matched so far. Begins to count anew.
    bool are_many_again(std::uint64_t fault_matches);

    static constexpr std::uint64_t kEnough = 1000;

  private:
    std::uint64_t refused_ = 0;
    std::optional<std::uint64_t> matches_before_;
};

// Returns a line for each request that is repeated for ever; none where some queue pair waits for a
// time at which something else happens.
std::vector<std::string> endless_retries(const World& world);

}  // namespace scenarios
