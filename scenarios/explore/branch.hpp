// Describes what comes of one way that a run can go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/explore/choice.hpp"
#include "scenarios/explore/mistakes.hpp"

namespace scenarios {

enum class Outcome : std::uint8_t {
    kPassed,
    kMissed,            // a fault never fired, and nothing failed: the branch shows nothing
    kFailed,            // an expectation, an assertion, an exit status
    kWrongData,         // an invariant is broken
    kHangs,             // somebody waits for what cannot come any more
    kCrashed,           // its process died
    kTooLong,           // its process was killed at the limit of wall time
    kMisuse,            // its program makes a mistake that the library names
    kLeaks,             // its program ends well, and leaves objects behind
    kTooSlow,           // it takes more virtual time than it may
    kNotDeterministic,  // two runs of the same differ
};
std::string_view to_string(Outcome outcome);

struct BranchResult {
    Outcome outcome = Outcome::kPassed;
    std::string kind;      // of what failed first: "invariant in_order", "exit status 1"
    std::string cause;     // of the completion that failed, or the assertion; "": not known
    std::string expected;  // by what failed first; "": nothing in particular
    std::string happened;
    std::string explanation;    // sentences, a line each: why the first completion failed that did
    std::int64_t time_ps = 0;   // of what failed first, else the end of the run
    std::uint64_t effects = 0;  // a digest of what programs saw and when, without the faults
    bool is_forked = false;     // its program was forked, and did not run from its start
    bool ended_well = true;     // its program, with status 0
    std::vector<Mistake> mistakes;  // of its program
    std::uint64_t run_digest = 0;   // of all its worlds
    std::string marks;  // "not deterministic (...)": why it may not repeat itself; "": it does
    std::uint64_t turns_digest = 0;  // of an order of threads; 0: there was nothing to choose
    // If they were asked for.
    std::vector<Place> places;
    Surroundings surroundings;
};

nlohmann::json to_json(const BranchResult& result);
BranchResult branch_from_json(const nlohmann::json& json);

}  // namespace scenarios
