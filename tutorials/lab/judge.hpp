// What happened, held against a rubric.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutorials/lab/rubric.hpp"
#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::lab {

struct Ending {
    enum class Kind : std::uint8_t { kExited, kKilledBySignal, kHung };
    Kind kind = Kind::kExited;
    int number = 0;  // exit status, or signal
};

// One run of a program.
struct Performance {
    viz::Trace trace;
    viz::Run run;
    std::string output;
    std::string errors;
    Ending ending;
};

// `open`: something that must not happen has not, but the program did not come to its end. It gives
// no points, and is not what went wrong.
struct Finding {
    bool holds = false;
    std::string seen;  // what was seen instead, or the event that must not be; may be empty
    bool open = false;
};

Finding judge(const Demand& demand, const Performance& performance);

// In the order of the rules.
std::vector<Finding> judge(const Rubric& rubric, const Performance& performance);

}  // namespace simverbs::lab
