// Judges what happened by a rubric.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tutorials/lab/ending.hpp"
#include "tutorials/lab/rubric.hpp"
#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::lab {

// One run of a program.
struct Performance {
    viz::Trace trace;
    viz::Run run;
    std::string output;
    std::string errors;
    std::vector<std::string> ignored;  // exceptions that Python ignored: they end no program
    std::string unsteady;  // why another run may go otherwise; "": it would not, or ended badly
    Ending ending;
    std::optional<Place> place;       // where it ended; nothing when it came to its end
    std::optional<Place> second_end;  // of an object: where it was destroyed again
};

// `open`: nothing can be said yet. The program did not come to its end, and might have done right
// or wrong after that: something that must not happen has not, or something that must has not, and
// a crash or an endless loop kept the program from it. Or the program did nothing that the rule
// could be about. It gives no points, and is not what went wrong.
struct Finding {
    bool holds = false;
    std::string seen;  // what was seen instead, or the event that must not be; may be empty
    bool open = false;
    bool is_absence = false;  // it does not hold for something that did not happen
};

Finding judge(const Demand& demand, const Performance& performance);

// Objects that were made and not ended, "ibv_create_qp 2 times, ibv_destroy_qp 1 time"; "" where
// all were ended.
std::string left_behind(const Performance& performance);

// In the order of the rules. A rule is open while none of those in its `once` holds; without a
// `once`, one that only forbids something is open while no rule holds that asks for something: an
// answer that does nothing breaks no rule, and keeps none. Where a program opened no device, all
// that would hold is open: what was printed tells of nothing that happened.
std::vector<Finding> judge(const Rubric& rubric, const Performance& performance);

// True when the rubric asks for events of devices and the program has opened none.
bool lacks_device(const Rubric& rubric, const Performance& performance);

}  // namespace simverbs::lab
