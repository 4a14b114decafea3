// A failure of the device that somebody asked for, and who is asked whether one is due.
//
// Short polls and late completions are no failures: a correct program does not notice them.
#pragma once

#include <cstdint>
#include <optional>

#include "fabric/core/sim_time.hpp"

#include "simverbs/hca/command_code.hpp"
#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

class Hca;
class QueuePair;

// The status that a fault gives a work request.
struct InjectedFault {
    WcStatus status = WcStatus::kSuccess;
    FaultCause cause = FaultCause::kInjectedStatus;
};

// Asked only while there is somebody (HcaCommons::faults), and free to do more than answer.
class DeviceFaults {
  public:
    // The device takes up a send, or a message has filled a receive.
    virtual std::optional<InjectedFault> work_request(QueuePair& qp, CompletedQueue queue) = 0;
    // A consumer of `hca` asks for `command`: the errno with which it fails, or 0.
    virtual int command(Hca& hca, CommandCode command) = 0;
    // A consumer of `hca` polls, and would get `found` completions, one at least: how many it gets.
    virtual std::uint32_t poll(Hca& /*hca*/, std::uint32_t found) { return found; }
    // A completion of that queue is about to be written: how much later it is to be visible.
    virtual fabric::SimDuration completion(QueuePair& /*qp*/, CompletedQueue /*queue*/) {
        return {};
    }
    // `hca` is about to send the event of a completion channel: how much later it is to go.
    virtual fabric::SimDuration completion_event(Hca& /*hca*/) { return {}; }

  protected:
    ~DeviceFaults() = default;
};

}  // namespace simverbs
