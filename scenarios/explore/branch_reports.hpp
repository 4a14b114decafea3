// Reads what an explored program has said of its branches (simverbs/model/branch_report.hpp).
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>

#include "scenarios/search/variation.hpp"

namespace scenarios {

struct BranchReports {
    bool has_started = false;     // false: the program cannot report, and nothing is known of it
    std::set<std::string> fired;  // names of faults that acted without a fork
    std::map<std::string, Ended> ended;  // by the name of the fault for which it has forked
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
