// How a call of a protocol engine ends.
#pragma once

#include <optional>

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/qp_transitions.hpp"

namespace simverbs {

// Why an engine takes its queue down. An engine returns it; the queue fails when the engine has
// returned, so nothing flushes an engine that is at work.
struct EngineFailure {
    QpTrigger trigger = QpTrigger::kQpError;
    FaultCause cause = FaultCause::kSuccess;
};
using EngineResult = std::optional<EngineFailure>;

}  // namespace simverbs
