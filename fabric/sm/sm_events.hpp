// The trace events that a sweeping subnet manager raises.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/mad/attributes.hpp"
#include "fabric/trace/event_info.hpp"

namespace fabric {

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

struct SweepBegan {
    static constexpr trace::EventInfo kInfo{"sweep_begins", trace::Category::kState};
    NodeId node;
    std::uint64_t sweep;  // counts from 1

    template <class F>
    void fields(F&& f) const {
        f("sweep", sweep);
    }
};

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
