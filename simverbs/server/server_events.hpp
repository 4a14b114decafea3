// The trace events of a served world that no device raises.
#pragma once

#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/trace/event_info.hpp"

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

}  // namespace simverbs
