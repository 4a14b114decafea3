// The trace events that a sweeping subnet manager raises.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/mad/attributes.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/routing_engine.hpp"
#include "fabric/trace/event_info.hpp"

namespace fabric {

// The subnet manager has become master or standby, or has given up.
struct SmStateChanged {
    static constexpr trace::EventInfo kInfo{"sm_state", trace::Category::kState};
    NodeId node;
    std::string_view from;
    std::string_view to;

    template <class F>
    void fields(F&& f) const {
        f("from", from);
        f("to", to);
    }
};

// A trap reached the subnet manager that is the master.
struct TrapReceived {
    static constexpr trace::EventInfo kInfo{"trap_received", trace::Category::kState};
    NodeId node;
    Lid issuer;
    std::uint64_t number;  // IBA 13.4.8.2

    template <class F>
    void fields(F&& f) const {
        f("issuer", issuer);
        f("number", number);
    }
};

// The subnet manager begins to look at its subnet.
struct SweepBegan {
    static constexpr trace::EventInfo kInfo{"sweep_begins", trace::Category::kState};
    NodeId node;
    std::uint64_t sweep;  // counts from 1

    template <class F>
    void fields(F&& f) const {
        f("sweep", sweep);
    }
};

// The subnet manager has brought up what it found.
struct SweepEnded {
    static constexpr trace::EventInfo kInfo{"sweep_ends", trace::Category::kState};
    NodeId node;
    std::uint64_t sweep;
    std::uint64_t nodes;  // found

    template <class F>
    void fields(F&& f) const {
        f("sweep", sweep);
        f("nodes", nodes);
    }
};

// The forwarding tables of a subnet have been computed. Where nothing is refused and no loop found,
// the start-up subnet manager does not say it.
struct RoutesComputed {
    static constexpr trace::EventInfo kInfo{"routes_computed", trace::Category::kState};
    NodeId node;
    RoutingEngine engine;
    std::string_view refused;      // other engines that were tried, and why not
    std::string_view credit_loop;  // channels that would wait for each other; empty: none

    template <class F>
    void fields(F&& f) const {
        f("engine", engine);
        f("refused", refused);
        f("credit_loop", credit_loop);
    }
};

// A block of a switch's linear forwarding table is to be another.
struct RoutesChanged {
    static constexpr trace::EventInfo kInfo{"routes_changed", trace::Category::kState};
    NodeId node;
    std::uint64_t switch_guid;
    std::uint64_t block;

    template <class F>
    void fields(F&& f) const {
        f("switch_guid", switch_guid);
        f("block", block);
    }
};

}  // namespace fabric
