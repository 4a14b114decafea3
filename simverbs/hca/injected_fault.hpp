// A failure of the device that somebody asked for, waiting for a work request to happen to.
#pragma once

#include <optional>

#include "fabric/faults/fault_events.hpp"

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs {

struct InjectedFault {
    fabric::FaultId id;
    WcStatus status = WcStatus::kSuccess;  // with which the work request completes
    FaultCause cause = FaultCause::kInjectedStatus;
};

// Of a queue pair.
struct InjectedFaults {
    std::optional<InjectedFault> send;
    std::optional<InjectedFault> receive;
};

}  // namespace simverbs
