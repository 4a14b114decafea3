// Events for the tests of the trace, with every kind of field.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/trace/event_info.hpp"

namespace fabric::trace::test {

enum class Colour : std::uint8_t { kRed, kBlue };
constexpr std::string_view to_string(Colour colour) {
    return colour == Colour::kRed ? "red" : "blue";
}

struct Called {
    static constexpr EventInfo kInfo{"called", Category::kCall};
    NodeId node;
    std::int32_t returned = 0;
    Colour colour = Colour::kRed;
    std::string_view verb = "poll";
    bool blocking = false;

    template <class F>
    void fields(F&& f) const {
        f("returned", returned);
        f("colour", colour);
        f("verb", verb);
        f("blocking", blocking);
    }
};

struct PacketSeen {
    static constexpr EventInfo kInfo{"packet_seen", Category::kPacket};
    NodeId node;
    std::uint64_t bytes = 0;

    template <class F>
    void fields(F&& f) const {
        f("bytes", bytes);
    }
};

}  // namespace fabric::trace::test
