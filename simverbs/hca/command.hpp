// The command channel of a device: what a driver may ask for that is not a ring entry, as plain
// structs that can cross a process boundary. Objects are named by their handles.
//
// Every command is answered with an errno (0: done); a reply means something only with 0. Commands
// about one kind of object stand in a file of their own.
#pragma once

#include <cstdint>

#include "simverbs/hca/command_code.hpp"
#include "simverbs/hca/completion_counter_command.hpp"
#include "simverbs/hca/memory_command.hpp"
#include "simverbs/hca/port_command.hpp"
#include "simverbs/hca/queue_command.hpp"
#include "simverbs/hca/work_queue_command.hpp"
#include "simverbs/model/misuse.hpp"

namespace simverbs {

// Opens device `device` of those that the attachment sees. A descriptor comes with the reply: async
// events are read from it (hca/event_pipe.hpp).
struct OpenContext {
    static constexpr CommandCode kCode = CommandCode::kOpenContext;
    using Reply = HandleReply;
    std::uint32_t device = 0;
};

struct CloseContext {
    static constexpr CommandCode kCode = CommandCode::kCloseContext;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
};

struct AllocatePd {
    static constexpr CommandCode kCode = CommandCode::kAllocatePd;
    using Reply = HandleReply;
    std::uint32_t context = 0;
};

struct DeallocatePd {
    static constexpr CommandCode kCode = CommandCode::kDeallocatePd;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// The device's clock, which is the world's; reading it moves nothing.
struct QueryClockReply {
    std::uint64_t now_ps = 0;
};
struct QueryClock {
    static constexpr CommandCode kCode = CommandCode::kQueryClock;
    using Reply = QueryClockReply;
    std::uint32_t context = 0;
};

// Queries for an import of an object that the context has already.
struct QueryPd {
    static constexpr CommandCode kCode = CommandCode::kQueryPd;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// A mistake of the program that the driver has found: for the trace alone.
struct ReportMisuse {
    static constexpr CommandCode kCode = CommandCode::kReportMisuse;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    Misuse misuse = Misuse::kAttributeMissing;
    std::uint32_t subject = 0;
};

// A post to the object `handle`, before its requests are written to the queue. The device does
// nothing for it: a fault can refuse it.
template <CommandCode Code>
struct AskForPost {
    static constexpr CommandCode kCode = Code;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};
using AskToPostSend = AskForPost<CommandCode::kPostSend>;
using AskToPostReceive = AskForPost<CommandCode::kPostReceive>;
using AskToPostSrqReceive = AskForPost<CommandCode::kPostSrqReceive>;
using AskToPostWqReceive = AskForPost<CommandCode::kPostWqReceive>;

// A poll of the completion queue `handle` is about to return `found` completions, one at least. A
// fault can have it return fewer.
struct AskForPollReply {
    std::uint32_t most = 0;
};
struct AskForPoll {
    static constexpr CommandCode kCode = CommandCode::kPollCq;
    using Reply = AskForPollReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t found = 0;
};

}  // namespace simverbs
