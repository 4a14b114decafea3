// Makes the records that tell of a fault, and of the object that it changes.
#pragma once

#include <cstdint>

#include "fabric/faults/fault_events.hpp"

#include "simverbs/faults/fault_environment.hpp"
#include "simverbs/faults/fault_spec.hpp"

namespace simverbs {

// The node in whose name the trace speaks of a fault: that of `hca`, or of the target without one.
fabric::NodeId place_of(const FaultTarget& target, const Hca* hca);

// The record that names a fault.
fabric::FaultDescribed description_of(fabric::FaultId id, const FaultSpec& spec);

// The object that a fault changes now. Where the specification names no device, it is that of the
// trigger. Queue pairs have their numbers.
FaultTarget target_of(const FaultSpec& spec, Hca* hca_of_trigger, std::uint32_t qpn_of_trigger,
                      FaultEnvironment& environment);

// Fills in the target of the record of a firing.
void describe_target(const FaultTarget& target, fabric::FaultFired& event);

}  // namespace simverbs
