// The trace events that the network raises.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/net/drop_reason.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/link_layer.hpp"
#include "fabric/net/node.hpp"
#include "fabric/net/port.hpp"
#include "fabric/net/port_transitions.hpp"
#include "fabric/trace/event_info.hpp"

namespace fabric {

// A frame was queued at a link, and when it will be on the wire.
struct FrameSent {
    static constexpr trace::EventInfo kInfo{"frame_sent", trace::Category::kPacket};
    NodeId node;
    PortNumber port;
    NodeId source;
    std::uint32_t flow;
    std::uint32_t frame;  // Frame::number
    Lid slid;
    Lid dlid;
    std::uint32_t wire_bytes;
    std::int64_t start;    // first bit on the wire, ps
    std::int64_t arrival;  // last bit at the other end, ps

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("source", source);
        f("flow", flow);
        f("frame", frame);
        f("slid", slid);
        f("dlid", dlid);
        f("wire_bytes", wire_bytes);
        f("start", start);
        f("arrival", arrival);
    }
};

// The frame announced by frame_sent did not start: a frame of another lane goes first.
struct FrameHeldBack {
    static constexpr trace::EventInfo kInfo{"frame_held_back", trace::Category::kPacket};
    NodeId node;
    PortNumber port;
    NodeId source;
    std::uint32_t flow;
    std::uint32_t frame;  // Frame::number
    Lid slid;
    Lid dlid;
    std::uint32_t wire_bytes;

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("source", source);
        f("flow", flow);
        f("frame", frame);
        f("slid", slid);
        f("dlid", dlid);
        f("wire_bytes", wire_bytes);
    }
};

// A frame has arrived at a port.
struct FrameReceived {
    static constexpr trace::EventInfo kInfo{"frame_received", trace::Category::kPacket};
    NodeId node;
    PortNumber port;
    NodeId source;
    std::uint32_t flow;
    std::uint32_t frame;  // Frame::number
    Lid slid;
    Lid dlid;
    std::uint32_t wire_bytes;

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("source", source);
        f("flow", flow);
        f("frame", frame);
        f("slid", slid);
        f("dlid", dlid);
        f("wire_bytes", wire_bytes);
    }
};

// A frame was lost, and why.
struct FrameDropped {
    static constexpr trace::EventInfo kInfo{"frame_dropped", trace::Category::kPacket};
    NodeId node;
    PortNumber port;
    DropReason reason;
    NodeId source;
    std::uint32_t flow;
    std::uint32_t frame;  // Frame::number
    Lid slid;
    Lid dlid;
    std::uint32_t wire_bytes;

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("reason", reason);
        f("source", source);
        f("flow", flow);
        f("frame", frame);
        f("slid", slid);
        f("dlid", dlid);
        f("wire_bytes", wire_bytes);
    }
};

// The name behind the number of a node. Told when a trace begins.
struct NodeDescribed {
    static constexpr trace::EventInfo kInfo{"node", trace::Category::kObject};
    NodeId node;
    std::string_view label;
    std::string_view host;
    NodeKind kind;
    std::uint64_t ports;

    template <class F>
    void fields(F&& f) const {
        f("label", label);
        f("host", host);
        f("kind", kind);
        f("ports", ports);
    }
};

// A link, its ends and its rate. Told when a trace begins, and when the rate changes.
struct LinkDescribed {
    static constexpr trace::EventInfo kInfo{"link", trace::Category::kObject};
    NodeId node;  // of end 0
    std::string_view link;
    PortNumber port;
    NodeId peer;
    PortNumber peer_port;
    LinkLayer layer;
    std::uint64_t bits_per_second;
    std::int64_t latency;  // ps
    LinkState state;

    template <class F>
    void fields(F&& f) const {
        f("link", link);
        f("port", port);
        f("peer", peer);
        f("peer_port", peer_port);
        f("layer", layer);
        f("bits_per_second", bits_per_second);
        f("latency", latency);
        f("state", state);
    }
};

// A port, its LID and its state. Told when a trace begins.
struct PortDescribed {
    static constexpr trace::EventInfo kInfo{"port", trace::Category::kObject};
    NodeId node;
    PortNumber port;
    Lid lid;
    PortState state;

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("lid", lid);
        f("state", state);
    }
};

// The logical state of a port has changed.
struct PortStateChanged {
    static constexpr trace::EventInfo kInfo{"port_state", trace::Category::kState};
    NodeId node;
    PortNumber port;
    PortState from;
    PortState to;
    PortTrigger trigger;

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("from", from);
        f("to", to);
        f("trigger", trigger);
    }
};

// A link went down or came up.
struct LinkStateChanged {
    static constexpr trace::EventInfo kInfo{"link_state", trace::Category::kState};
    NodeId node;  // of end 0
    std::string_view link;
    LinkState to;

    template <class F>
    void fields(F&& f) const {
        f("link", link);
        f("to", to);
    }
};

// Frames wait for each other's buffers and will do so for ever.
struct CreditLoopFound {
    static constexpr trace::EventInfo kInfo{"credit_loop", trace::Category::kWarning};
    NodeId node;  // of the first port
    std::string_view ports;

    template <class F>
    void fields(F&& f) const {
        f("ports", ports);
    }
};

// An attribute of a port has changed; the asynchronous events of its device follow from it.
struct PortEventRaised {
    static constexpr trace::EventInfo kInfo{"port_event", trace::Category::kPort};
    NodeId node;
    PortNumber port;
    PortEvent event;

    template <class F>
    void fields(F&& f) const {
        f("port", port);
        f("event", event);
    }
};

}  // namespace fabric
