// The trace events of a served world that no device raises.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/trace/event_info.hpp"

#include "simverbs/model/rdma_cm_events.hpp"

namespace simverbs {

// An operator changes the fabric: `simverbs fabric`. What follows stands behind it.
struct FabricCommanded {
    static constexpr fabric::trace::EventInfo kInfo{"fabric_command",
                                                    fabric::trace::Category::kCall};
    fabric::NodeId node;
    std::string_view command;  // "link down"
    std::string_view name;     // of the link or port
    std::string_view value;

    template <class F>
    void fields(F&& f) const {
        f("command", command);
        f("name", name);
        f("value", value);
    }
};

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

}  // namespace simverbs
