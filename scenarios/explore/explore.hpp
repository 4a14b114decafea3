// Tries everything that could go wrong in a run: each fault at each of its places, orders of its
// threads, then pairs of faults, then more faults at random. What fails is put into classes by its
// cause, each with the smallest scenario that fails so.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric/core/sim_time.hpp"

#include "scenarios/engine/process_pool.hpp"
#include "scenarios/explore/subject.hpp"

namespace scenarios {

struct ExploreOptions {
    std::vector<ChoiceGroup> groups{};  // empty: all
    std::string host{};                 // faults at this host alone; "": at any
    unsigned depth = 1;                 // faults in a branch at most, from 1
    std::uint64_t walks = 1000;         // of a depth above 2: random walks to so many faults
    std::uint64_t seed = 1;             // of walks
    std::uint64_t orders = 100;         // of threads, of a program that has several
    unsigned jobs = 1;
    // Wall time: of the whole, after which no branch is begun; and of one branch, by default 2 s or
    // 20 times as long as the run without faults takes.
    std::chrono::milliseconds budget = ProcessPool::kNoLimit;
    std::optional<std::chrono::milliseconds> limit{};
    std::optional<fabric::SimDuration> within{};  // virtual time of each branch at most
    std::string folder = ".";  // of explore-N.yaml, one a class; made where it is missing
    std::size_t kept = 0;      // N begins behind it
    Onlooker onlooker{};       // of branches
};

// Branches that fail for the same reason.
struct Finding {
    BranchResult result{};          // of the first
    std::vector<Choice> choices{};  // of the first: the fewest, then the earliest
    std::uint64_t branches = 0;
    std::string scenario{};  // the text of one that fails again
    std::string kept{};      // the file with it
    std::string replay{};    // the command that runs it, or shows the finding
    std::string error{};     // why it could not be kept
};

// A choice of the run without faults, tried by itself.
struct Tried {
    Choice choice{};
    std::optional<Outcome> outcome{};      // nothing: there was no time for it
    std::optional<std::size_t> finding{};  // its index
};

// Says why nothing was explored.
enum class Unexplored : std::uint8_t {
    kNone,
    kFailsByItself,  // without any fault
    kNoPlace,        // no packet, and no verb that can fail
    kNoSuchHost,     // as the options name
};

struct ExploreResult {
    std::string error{};                              // nothing was explored
    Unexplored unexplored = Unexplored::kNone;        // what the error is about
    std::string failure{};                            // how it fails by itself
    std::vector<Mistake> mistakes{};                  // of its program without faults: no findings
    std::string marks{};                              // why it may not repeat itself; "": it does
    std::size_t packets = 0;                          // of the run without faults
    std::size_t calls = 0;                            // of its programs
    std::map<std::string, std::uint64_t> choices{};   // of single faults, by group
    std::map<std::string, std::uint64_t> outcomes{};  // of all branches
    std::uint64_t singles = 0;                        // branches that were run, of one fault
    std::uint64_t pairs = 0;                          // of two
    std::uint64_t walked = 0;                         // of two and more, drawn at random
    std::uint64_t orders = 0;            // branches that were run, of an order of threads
    std::uint64_t different_orders = 0;  // of those that ended, with another run digest
    std::uint64_t orders_left = 0;       // that the budget has left out
    std::uint64_t forked = 0;  // branches that began at their fault, and did not repeat the start
    std::uint64_t left = 0;    // branches of one fault that the budget has left out
    std::uint64_t same = 0;    // branches of one fault after which nothing new can happen: no pairs
    bool pairs_left = false;   // pairs that the budget has left out
    bool walks_left = false;   // random walks that the budget has left out
    std::vector<Finding> findings{};  // in the order of finding
    std::vector<Place> places{};      // of the run without faults
    std::vector<Tried> tried{};       // every single fault, by place
    bool stopped = false;             // the onlooker wanted no more
};

ExploreResult explore(const Subject& subject, const ExploreOptions& options);

// Tells a finding: its faults, what happened, why, and the command that replays it.
std::string report(const Finding& finding, std::size_t number);
// Tells each finding, and what was tried. `before`: findings with smaller numbers.
std::string report(const ExploreResult& result, std::size_t before = 0);
// Tells what was tried, in a few lines.
std::string summary(const ExploreResult& result);
std::string json(const ExploreResult& result);

}  // namespace scenarios
