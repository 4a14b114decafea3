// Checks that a run repeats itself: in fresh processes, with another layout of the address space,
// on one processor, with other memory, and by other builds. Where it does not: the first record of
// the run digest that differs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/engine/process_pool.hpp"
#include "scenarios/search/trace_difference.hpp"

namespace scenarios {

struct CheckOptions {
    std::vector<std::string> settings{};  // of scenarios
    std::vector<std::string> builds{};    // of the simverbs command; each runs every scenario
    unsigned jobs = 1;
    std::chrono::milliseconds limit = std::chrono::minutes(10);  // of wall time, of each run
    std::string folder = ".";                                    // of traces that differ
    std::string libraries{};  // searched first for those of a program; "": as it finds them
    Onlooker onlooker{};      // of runs
};

// Why there was nothing to run.
enum class Obstacle : std::uint8_t { kNone, kInput, kNoProgram };

struct CheckRun {
    std::string name;     // how it was run: "fixed addresses"
    std::string digests;  // a line a world
    std::string mark{};   // why nothing is promised of it; "" where something is
    std::string error{};  // it came to no digest
    Obstacle obstacle = Obstacle::kNone;
};

struct CheckResult {
    std::string subject;  // the file, or the command
    std::vector<CheckRun> runs{};
    std::optional<TraceDifference> difference{};
    std::string one{}, other{};                    // which runs differ
    std::string trace_of_one{}, trace_of_other{};  // kept
    std::string note{};    // why there is a difference, and no record that differs
    bool stopped = false;  // the onlooker wanted no more: nothing is known

    [[nodiscard]] bool is_same() const;
    [[nodiscard]] Obstacle obstacle() const;
};

CheckResult check_scenario(const std::string& file, const CheckOptions& options);
// Checks a program that uses libsimverbs in its own process; `command` is not empty.
CheckResult check_program(const std::vector<std::string>& command, const CheckOptions& options);

// "SAME file (digest, 4 runs)", or "DIFFERS file" with every run and the first difference.
std::string report(const CheckResult& result);

}  // namespace scenarios
