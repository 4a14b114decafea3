// Trace records of the commands and events of /dev/infiniband/rdma_cm, wherever it is opened.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/trace/event_info.hpp"

#include "simverbs/model/rdma_cm_events.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs::rdma_cm {

// A command of rdma_cm and its errno; GET_EVENT only where there was an event. Neither addresses of
// the program nor its own names for ids are in it.
struct RdmaCmCommanded {
    static constexpr fabric::trace::EventInfo kInfo{"rdma_cm", fabric::trace::Category::kCall};
    fabric::NodeId node;       // the host's first
    std::string_view command;  // "RESOLVE_ADDR"
    std::uint32_t id;          // of the host; of LEAVE_MCAST a membership; 0 where there is none
    int error;

    template <class F>
    void fields(F&& f) const {
        f("command", command);
        f("id", id);
        f("errno", error);
    }
};

// A program has taken an event of rdma_cm.
struct RdmaCmEventTaken {
    static constexpr fabric::trace::EventInfo kInfo{"rdma_cm_event",
                                                    fabric::trace::Category::kCall};
    fabric::NodeId node;
    RdmaEventType event;
    std::uint32_t id;
    int status;

    template <class F>
    void fields(F&& f) const {
        f("event", event);
        f("id", id);
        f("status", status);
    }
};

// Emits the record of what a program has written and was answered. Returns false where there is
// none: GET_EVENT without an event, or no command.
bool trace_command(Simulation& simulation, fabric::NodeId node,
                   std::span<const std::uint8_t> written, const UcmaReply& reply);

}  // namespace simverbs::rdma_cm
