// The trace events that agents raise.
#pragma once

#include <cstdint>

#include "fabric/core/strong_id.hpp"
#include "fabric/trace/event_info.hpp"

namespace fabric {

// The agent of a port has sent a trap to its subnet manager.
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

// A management datagram that leaves its node in a frame; switches that route it by direction send
// one each.
struct DatagramSent {
    static constexpr trace::EventInfo kInfo{"datagram_sent", trace::Category::kPacket};
    NodeId node;
    std::uint32_t qpn;    // 0: SMI, 1: GSI
    std::uint32_t frame;  // Frame::number
    std::uint32_t dest_qpn;
    std::uint8_t management_class;  // IBA table 111
    std::uint8_t method;
    std::uint16_t attribute;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("frame", frame);
        f("dest_qpn", dest_qpn);
        f("class", management_class);
        f("method", method);
        f("attribute", attribute);
    }
};

}  // namespace fabric
