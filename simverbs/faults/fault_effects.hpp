// The actions of faults on links, ports, nodes and devices.
#pragma once

#include <string_view>

#include "fabric/faults/fault_clock.hpp"

#include "simverbs/faults/fault_environment.hpp"
#include "simverbs/faults/fault_spec.hpp"

namespace simverbs {

// Does it; `later` has what comes of it after a while. Returns why it could not be done, "" if it
// was.
std::string_view carry_out(const FaultSpec& spec, const FaultTarget& target,
                           FaultEnvironment& environment, fabric::FaultClock& later);

}  // namespace simverbs
