// A scenario that fails, made small: the fewest faults, then hosts, then operations with which it
// still fails in the same way: with a failure of the same kind, for the same reason (`root_of`),
// and with no more firings of faults.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/engine/process_pool.hpp"
#include "scenarios/search/trial.hpp"

namespace scenarios {

struct ShrinkOptions {
    std::vector<std::string> settings{};
    std::optional<std::uint64_t> seed{};  // of the run; the file's
    // Wall time of each run: one that takes longer fails by that.
    std::chrono::milliseconds limit = std::chrono::minutes(1);
    std::size_t most_runs = 20'000;  // then it is as small as it has become
    Runner runner = scenarios::run;
    Onlooker onlooker{};  // of runs, of whose number nothing is known but that it is `most_runs` at
                          // most
};

struct ScenarioSize {
    std::size_t faults = 0;  // that fired, each firing counted
    std::size_t hosts = 0;
    std::size_t operations = 0;
};

struct ShrinkResult {
    std::string error{};  // it cannot be read, or does not fail
    std::string kind{};   // of the failure
    std::string text{};   // the small scenario, with a comment of what it is
    Verdict verdict{};    // of it
    ScenarioSize before{};
    ScenarioSize after{};
    std::size_t runs = 0;
    bool ran_out = false;  // of runs
    bool stopped = false;  // the onlooker wanted no more; the text is as small as it had become, or
                           // empty
};

// `progress` is told of each step: "faults: 12 of 40".
ShrinkResult shrink(const std::string& file, const ShrinkOptions& options,
                    const std::function<void(std::string_view)>& progress);

}  // namespace scenarios
