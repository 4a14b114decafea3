// Reads what an explored program has said of its branches (simverbs/model/branch_report.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "scenarios/search/variation.hpp"

namespace scenarios {

// Holds what a program said of its worlds as it ended.
struct WorldsEnd {
    std::int64_t time_ps = 0;        // virtual time of the longest
    std::uint64_t digest = 0;        // of the run digests of all
    std::string marks{};             // of the first that might not repeat itself; "": all would
    std::uint64_t turns_digest = 0;  // of an order of threads; 0: there was nothing to choose
};

struct BranchReports {
    bool has_started = false;     // false: the program cannot report, and nothing is known of it
    std::set<std::string> fired;  // names of faults that acted without a fork
    std::map<std::string, Ended> ended;       // by the name of the fault for which it has forked
    std::map<std::string, WorldsEnd> worlds;  // by the name of the branch; "": of none
    std::map<std::string, std::string> obstacles;  // why it could not fork, by name
};

// Returns the variable that asks a program of this process for such reports. `limit` is that of
// each branch.
std::pair<std::string, std::string> variable_for_reports(const std::string& reports_file,
                                                         const std::string& output_file,
                                                         std::chrono::milliseconds limit);

// Returns all whole reports; the program may have died while it wrote the last one.
BranchReports read_branch_reports(const std::string& reports_file);

}  // namespace scenarios
