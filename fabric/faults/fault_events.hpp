// The trace event that every firing of a fault raises; it is part of the run digest.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/faults/frame_matcher.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/node.hpp"
#include "fabric/trace/event_info.hpp"

namespace fabric {

// As written in a scenario, counted from 1; 0 is a fault without a scenario.
using FaultId = StrongId<struct FaultIdTag, std::uint32_t>;

// The name that somebody gave a fault, and what it is done to, for those who tell of its firings.
struct FaultDescribed {
    static constexpr trace::EventInfo kInfo{"fault", trace::Category::kObject};
    NodeId node;  // of the target
    FaultId fault;
    std::string_view action;
    std::string_view name;
    std::string_view target;  // the kind of object; "": what the trigger matches
    std::string_view link;    // "" where the target is none; likewise 0 below
    PortNumber port;
    std::uint32_t qpn;

    template <class F>
    void fields(F&& f) const {
        f("fault", fault);
        f("action", action);
        f("name", name);
        f("target", target);
        f("link", link);
        f("port", port);
        f("qpn", qpn);
    }
};

// An injected fault has fired.
struct FaultFired {
    static constexpr trace::EventInfo kInfo{"fault_fired", trace::Category::kFault};
    NodeId node;  // whose transmission was hit
    PortNumber port;
    FaultId fault;
    std::string_view action;
    std::uint64_t nth;  // frame seen at this point, from 1
    NodeId source;
    std::uint32_t flow;
    Lid slid;
    Lid dlid;
    // Describe the packet that was hit; "" and 0 where the fault hit none.
    std::string_view operation;
    std::uint32_t relative_psn = 0;
    std::uint16_t attempt = 0;
    std::uint32_t to_flow = 0;
    // The object that the action changes; the transmitter where it changes the packet.
    NodeId target;
    PortNumber target_port;        // 0: no port
    std::uint32_t target_qpn = 0;  // 0: no queue pair

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("fault", fault);
        f("action", action);
        f("nth", nth);
        f("source", source);
        f("flow", flow);
        f("slid", slid);
        f("dlid", dlid);
        f("operation", operation);
        f("relative_psn", relative_psn);
        f("attempt", attempt);
        f("to_flow", to_flow);
        f("target", target);
        f("target_port", target_port);
        f("target_qpn", target_qpn);
    }
};

// The time of a fault had come, and there was nothing (any more) that it could be done to.
struct FaultMissed {
    static constexpr trace::EventInfo kInfo{"fault_missed", trace::Category::kFault};
    NodeId node;
    FaultId fault;
    std::string_view action;
    std::string_view reason;

    template <class F>
    void fields(F&& f) const {
        f("fault", fault);
        f("action", action);
        f("reason", reason);
    }
};

// Makes the record of a fault that hit `frame`, the `nth` that it saw.
inline FaultFired fired(const LinkDirection& direction, const Frame& frame, FaultId id,
                        std::string_view action, std::uint64_t nth,
                        const FrameDescription& packet = {}) {
    return {.node = direction.from().node().id(),
            .port = direction.from().number(),
            .fault = id,
            .action = action,
            .nth = nth,
            .source = frame.source,
            .flow = frame.flow,
            .slid = frame.slid,
            .dlid = frame.dlid,
            .operation = packet.operation,
            .relative_psn = packet.relative_psn,
            .attempt = packet.attempt,
            .to_flow = packet.to_flow,
            .target = direction.from().node().id(),
            .target_port = direction.from().number()};
}

}  // namespace fabric
