// The trace events that agents raise.
#pragma once

#include <cstdint>

#include "fabric/core/strong_id.hpp"
#include "fabric/trace/event_info.hpp"

namespace fabric {

struct TrapSent {
    static constexpr trace::EventInfo kInfo{"trap_sent", trace::Category::kState};
    NodeId node;
    PortNumber port;
    std::uint16_t number;  // IBA 13.4.8.2
    std::uint32_t nth;     // counts from 1 until it is repressed

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("number", number);
        f("nth", nth);
    }
};

}  // namespace fabric
