// A failure of the device that somebody asked for, and who is asked whether one is due.
#pragma once

#include <cstdint>
#include <optional>

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

  protected:
    ~DeviceFaults() = default;
};

}  // namespace simverbs
