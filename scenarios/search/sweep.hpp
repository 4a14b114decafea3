// One scenario with many seeds, run in processes of their own, several in each; the seeds that fail
// are kept as scenarios that replay.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/engine/process_pool.hpp"
#include "scenarios/search/shard.hpp"
#include "scenarios/search/swarm.hpp"
#include "scenarios/search/trial.hpp"

namespace scenarios {

struct SweepOptions {
    std::vector<std::string> settings{};
    std::uint64_t first = 1;
    std::uint64_t seeds = 100;  // first, first + 1, ... of which this process runs its shard
    Shard shard{};
    unsigned jobs = 1;
    // Wall time: of the whole, after which no seed is begun; and of one seed, which fails then.
    std::chrono::milliseconds limit = ProcessPool::kNoLimit;
    std::chrono::milliseconds seed_limit = std::chrono::minutes(1);
    std::uint64_t most_failures = 0;  // after which no seed is begun; 0: no limit
    std::string folder = ".";         // of seed-S.yaml; made where it is missing
    std::optional<SwarmOptions> swarm{};
    Runner runner = scenarios::run;
    Onlooker onlooker{};  // of seeds
};

// A seed that failed.
struct FailedSeed {
    std::uint64_t seed = 0;
    Verdict verdict{};
    std::string kept{};   // the file
    std::string error{};  // why it could not be kept
};

struct SweepResult {
    std::string error{};  // nothing was swept
    std::uint64_t run = 0;
    std::uint64_t failed = 0;
    std::uint64_t left = 0;  // seeds that a limit has left out
    std::uint64_t not_deterministic = 0;
    std::set<std::uint64_t> digests{};
    std::int64_t heal_ps = 0;  // of a swarm
    bool stopped = false;      // the onlooker wanted no more; what was running is not counted
};

// `found` is told of each as it ends: with several jobs in any order.
SweepResult sweep(const std::string& file, const SweepOptions& options,
                  const std::function<void(const FailedSeed&)>& found);

// "FAIL seed 7 ...", with what failed first, the kept file and the line that replays it.
std::string report(const FailedSeed& failed);

}  // namespace scenarios
