// How a call of a protocol engine ends.
#pragma once

#include <cstdint>

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/qp_transitions.hpp"

namespace simverbs {

// Why an engine takes its queue down. An engine returns it; the queue fails when the engine has
// returned, so nothing flushes an engine that is at work.
struct EngineFailure {
    QpTrigger trigger = QpTrigger::kQpError;
    FaultCause cause = FaultCause::kSuccess;
};

// A failure, or none. It is one word, since it is returned for every packet: two bytes and a flag
// would be put together in memory each time.
class EngineResult {
  public:
    constexpr EngineResult() = default;
    constexpr EngineResult(EngineFailure failure)
        : word_(kFailed | static_cast<std::uint32_t>(failure.trigger) << 8U |
                static_cast<std::uint32_t>(failure.cause)) {}

    // Returns true if it is a failure.
    constexpr explicit operator bool() const { return word_ != 0; }
    // Only where it is one.
    [[nodiscard]] constexpr EngineFailure failure() const {
        return {static_cast<QpTrigger>(word_ >> 8U & 0xFFU),
                static_cast<FaultCause>(word_ & 0xFFU)};
    }

  private:
    static constexpr std::uint32_t kFailed = 1U << 16U;
    static_assert(sizeof(QpTrigger) == 1 && sizeof(FaultCause) == 1);

    std::uint32_t word_ = 0;
};

}  // namespace simverbs
