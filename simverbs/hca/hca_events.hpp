// The trace events that a device raises.
//
// None carries an address or a wr_id (often an address): they differ between two equal runs.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/trace/event_info.hpp"

#include "simverbs/hca/command.hpp"
#include "simverbs/model/access.hpp"
#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/cq_transitions.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/packet_fate.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/services.hpp"
#include "simverbs/model/srq_transitions.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/model/wq_transitions.hpp"
#include "simverbs/transport/queue_effects.hpp"
#include "simverbs/wire/packet.hpp"

namespace simverbs {

using fabric::NodeId;
using fabric::trace::Category;
using fabric::trace::EventInfo;

// The queue pair behind a number. Told when it is made, and when a trace begins.
struct QueuePairDescribed {
    static constexpr EventInfo kInfo{"queue_pair", Category::kObject};
    NodeId node;
    std::uint32_t qpn;
    Service service;
    std::uint32_t send_cq;     // 0: none
    std::uint32_t receive_cq;  // likewise
    std::uint32_t srq;         // likewise
    QpState state;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("service", service);
        f("send_cq", send_cq);
        f("receive_cq", receive_cq);
        f("srq", srq);
        f("state", state);
    }
};

// The attributes that the two ends of a connection must agree on: told in RTR, and again in RTS.
struct QueuePairConnected {
    static constexpr EventInfo kInfo{"queue_pair_connected", Category::kObject};
    NodeId node;
    std::uint32_t qpn;
    QpState state;
    std::uint32_t dest_qpn;
    std::uint32_t rq_psn;  // on the wire
    std::uint32_t sq_psn;  // on the wire; means something from RTS on
    std::uint32_t path_mtu;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("state", state);
        f("dest_qpn", dest_qpn);
        f("rq_psn", rq_psn);
        f("sq_psn", sq_psn);
        f("path_mtu", path_mtu);
    }
};

// A row of kCqTransitions, as far as the device hears of it: a queue is armed in memory that only
// its next completion looks at.
struct CqStateChanged {
    static constexpr EventInfo kInfo{"cq_state", Category::kObject};
    NodeId node;
    std::uint32_t cq;
    CqState from;
    CqState to;
    CqTrigger trigger;

    template <class F>
    void fields(F&& f) const {
        f("cq", cq);
        f("from", from);
        f("to", to);
        f("trigger", trigger);
    }
};

// A row of kSrqTransitions.
struct SrqStateChanged {
    static constexpr EventInfo kInfo{"srq_state", Category::kObject};
    NodeId node;
    std::uint32_t srq;
    SrqState from;
    SrqState to;
    SrqTrigger trigger;

    template <class F>
    void fields(F&& f) const {
        f("srq", srq);
        f("from", from);
        f("to", to);
        f("trigger", trigger);
    }
};

// A program opened the device, or closed it: no command of a context, so not among the calls.
struct ContextDescribed {
    static constexpr EventInfo kInfo{"context", Category::kObject};
    NodeId node;
    std::uint32_t handle;
    bool open;

    template <class F>
    void fields(F&& f) const {
        f("handle", handle);
        f("open", open);
    }
};

// The rights that a registered region gives to its own device and to peers. Told when it is
// registered, and when it is registered again.
struct MemoryRegionDescribed {
    static constexpr EventInfo kInfo{"memory_region", Category::kObject};
    NodeId node;
    std::uint32_t handle;
    std::uint64_t bytes;
    AccessRights access;

    template <class F>
    void fields(F&& f) const {
        f("handle", handle);
        f("bytes", bytes);
        f("local_write", access.contains(Access::kLocalWrite));
        f("remote_write", access.contains(Access::kRemoteWrite));
        f("remote_read", access.contains(Access::kRemoteRead));
        f("remote_atomic", access.contains(Access::kRemoteAtomic));
    }
};

// A command of the control channel and its errno.
struct VerbCalled {
    static constexpr EventInfo kInfo{"verb", Category::kCall};
    NodeId node;
    CommandCode verb;
    std::uint32_t handle;  // of the object concerned; 0 where there is none
    int error;

    template <class F>
    void fields(F&& f) const {
        f("verb", verb);
        f("handle", handle);
        f("errno", error);
    }
};

// Work requests were posted: `posted` is the queue's index after them.
struct WorkPosted {
    static constexpr EventInfo kInfo{"posted", Category::kCall};
    NodeId node;
    std::uint32_t qpn;
    bool send;
    std::uint32_t posted;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("send", send);
        f("posted", posted);
    }
};

// Operations on the tags of a shared receive queue were posted: `posted` is their index after them.
struct TagOperationsPosted {
    static constexpr EventInfo kInfo{"tags_posted", Category::kCall};
    NodeId node;
    std::uint32_t srq;
    std::uint32_t posted;

    template <class F>
    void fields(F&& f) const {
        f("srq", srq);
        f("posted", posted);
    }
};

// Receives were posted to a work queue: `posted` is the queue's index after them.
struct WorkQueuePosted {
    static constexpr EventInfo kInfo{"wq_posted", Category::kCall};
    NodeId node;
    std::uint32_t wqn;
    std::uint32_t posted;

    template <class F>
    void fields(F&& f) const {
        f("wqn", wqn);
        f("posted", posted);
    }
};

// A completion is in its queue.
struct WorkCompleted {
    static constexpr EventInfo kInfo{"completion", Category::kCompletion};
    NodeId node;
    std::uint32_t cq;
    std::uint32_t qpn;
    std::uint32_t index;  // of the work request in its queue
    WcStatus status;
    WcOpcode opcode;
    FaultCause cause;
    std::uint32_t bytes;

    template <class F>
    void fields(F&& f) const {
        f("cq", cq);
        f("qpn", qpn);
        f("index", index);
        f("status", status);
        f("opcode", opcode);
        f("cause", cause);
        f("bytes", bytes);
    }
};

// The state of a queue pair has changed, by what and why.
struct QpStateChanged {
    static constexpr EventInfo kInfo{"qp_state", Category::kState};
    NodeId node;
    std::uint32_t qpn;
    QpState from;
    QpState to;
    QpTrigger trigger;
    FaultCause cause;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("from", from);
        f("to", to);
        f("trigger", trigger);
        f("cause", cause);
    }
};

// A row of kQpTransitions that leads to where it comes from.
struct QpStayed {
    static constexpr EventInfo kInfo{"qp_stayed", Category::kObject};
    NodeId node;
    std::uint32_t qpn;
    QpState state;
    QpTrigger trigger;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("state", state);
        f("trigger", trigger);
    }
};

// The state of a work queue has changed.
struct WqStateChanged {
    static constexpr EventInfo kInfo{"wq_state", Category::kState};
    NodeId node;
    std::uint32_t wqn;
    WqState from;
    WqState to;
    WqTrigger trigger;

    template <class F>
    void fields(F&& f) const {
        f("wqn", wqn);
        f("from", from);
        f("to", to);
        f("trigger", trigger);
    }
};

// An asynchronous event waits for the program.
struct AsyncEventRaised {
    static constexpr EventInfo kInfo{"async_event", Category::kAsyncEvent};
    NodeId node;
    AsyncEvent event;
    std::uint32_t subject;  // handle, or port number

    template <class F>
    void fields(F&& f) const {
        f("event", event);
        f("subject", subject);
    }
};

// The program made a mistake, and asked to be told.
struct MisuseNamed {
    static constexpr EventInfo kInfo{"misuse", Category::kWarning};
    NodeId node;
    Misuse misuse;
    std::uint32_t subject;  // number or handle; 0 for none

    template <class F>
    void fields(F&& f) const {
        f("misuse", misuse);
        f("subject", subject);
    }
};

// An operation on the tags of a shared receive queue.
struct TagListChanged {
    static constexpr EventInfo kInfo{"tag_list", Category::kObject};
    NodeId node;
    std::uint32_t srq;
    WcOpcode operation;
    std::uint32_t handle;
    std::uint64_t tag;  // to add, like the mask
    std::uint64_t mask;
    bool synchronized;  // software has reported every unexpected message
    FaultCause cause;

    template <class F>
    void fields(F&& f) const {
        f("srq", srq);
        f("operation", operation);
        f("handle", handle);
        f("tag", tag);
        f("mask", mask);
        f("synchronized", synchronized);
        f("cause", cause);
    }
};

// A message with a tag header has found its buffer: a tagged one, or an ordinary receive.
struct TagLookedUp {
    static constexpr EventInfo kInfo{"tag", Category::kMessage};
    NodeId node;
    std::uint32_t qpn;
    std::uint32_t srq;
    std::uint64_t tag;
    TagOutcome outcome;
    std::uint32_t handle;  // of the tag that it matched
    bool rendezvous;       // which the device carries out

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("srq", srq);
        f("tag", tag);
        f("outcome", outcome);
        f("handle", handle);
        f("rendezvous", rendezvous);
    }
};

// A responder has carried out a request whole.
struct MessageDelivered {
    static constexpr EventInfo kInfo{"delivered", Category::kMessage};
    NodeId node;
    std::uint32_t qpn;
    MessageKind kind;
    std::uint64_t bytes;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("kind", kind);
        f("bytes", bytes);
    }
};

// A request without acknowledgment went no further; `cause` says why.
struct MessageDropped {
    static constexpr EventInfo kInfo{"dropped", Category::kMessage};
    NodeId node;
    std::uint32_t qpn;
    std::uint32_t psn;
    FaultCause cause;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("psn", psn);
        f("cause", cause);
    }
};

// Without the address in an RDMA header: see above. A field means something only where the opcode
// has its header.
struct PacketSent {
    static constexpr EventInfo kInfo{"packet_sent", Category::kPacket};
    NodeId node;
    std::uint32_t qpn;
    std::uint32_t frame;  // Frame::number
    std::uint32_t dest_qpn;
    std::uint8_t bth_opcode;
    std::string_view opcode;
    std::uint32_t psn;
    std::uint32_t payload;
    bool ack_request;
    bool retransmission;
    std::uint8_t syndrome;
    std::uint32_t msn;
    std::uint32_t rkey;
    std::uint32_t dma_length;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("frame", frame);
        f("dest_qpn", dest_qpn);
        f("bth_opcode", bth_opcode);
        f("opcode", opcode);
        f("psn", psn);
        f("payload", payload);
        f("ack_request", ack_request);
        f("retransmission", retransmission);
        f("syndrome", syndrome);
        f("msn", msn);
        f("rkey", rkey);
        f("dma_length", dma_length);
    }
};

// A notification of congestion has slowed a queue pair down.
struct RateReduced {
    static constexpr EventInfo kInfo{"rate_reduced", Category::kPacket};
    NodeId node;
    std::uint32_t qpn;
    std::uint64_t bits_per_second;

    template <class F>
    void fields(F&& f) const {
        f("qpn", qpn);
        f("bits_per_second", bits_per_second);
    }
};

// A packet that reached the device went no further.
struct PacketDiscarded {
    static constexpr EventInfo kInfo{"packet_discarded", Category::kPacket};
    NodeId node;
    std::uint32_t dest_qpn;
    std::uint32_t psn;
    PacketFate fate;

    template <class F>
    void fields(F&& f) const {
        f("dest_qpn", dest_qpn);
        f("psn", psn);
        f("fate", fate);
    }
};

}  // namespace simverbs
