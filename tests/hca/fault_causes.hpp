// How each cause of a failed completion on RC is brought about by what programs and links do, with
// no switch inside the device.
#pragma once

#include <functional>
#include <ostream>
#include <string_view>
#include <vector>

#include "simverbs/model/completion_faults.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {

// An exchange that is about to happen: a default that an arrangement spoils. `a` posts `request`,
// and behind it an unsignaled WRITE; `b` has posted `receives`.
struct Exchange {
    Send request;
    std::vector<std::vector<Segment>> receives;
};

struct FaultScenario {
    FaultCause cause = FaultCause::kSuccess;
    std::function<void(PairOptions&)> options;
    std::function<void(Pair&, Exchange&)> arrange;
    std::function<void(Pair&)> after_posting;

    friend void PrintTo(const FaultScenario& scenario, std::ostream* out) {
        *out << to_string(scenario.cause);
    }
};

const std::vector<FaultScenario>& fault_scenarios();

// Causes of the protocol that RC has and no scenario reaches, with the reason.
struct ExcusedCause {
    FaultCause cause;
    std::string_view reason;
};
const std::vector<ExcusedCause>& excused_causes();

// An exchange in which nothing is wrong: a SEND of 64 bytes into the first of two receives.
Exchange good_exchange(const Pair& pair);

}  // namespace simverbs::test
