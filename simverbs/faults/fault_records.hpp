// What the trace says of a fault and of the object that it changes.
#pragma once

#include "fabric/faults/fault_events.hpp"

#include "simverbs/faults/fault_spec.hpp"

namespace simverbs {

// The node in whose name the trace speaks of a fault: that of `hca`, or of the target without one.
fabric::NodeId place_of(const FaultTarget& target, const Hca* hca);

// The record that names a fault.
fabric::FaultDescribed description_of(fabric::FaultId id, const FaultSpec& spec);

}  // namespace simverbs
