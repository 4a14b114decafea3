// Commands about queues: completion channels and queues, queue pairs, shared receive queues.
#pragma once

#include <cstdint>

#include "simverbs/hca/command_code.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/receive_hash.hpp"
#include "simverbs/model/send_request_layout.hpp"
#include "simverbs/transport/qp_attributes.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

// A descriptor comes with the reply: completion events are read from it.
struct CreateChannel {
    static constexpr CommandCode kCode = CommandCode::kCreateChannel;
    using Reply = HandleReply;
    std::uint32_t context = 0;
};

struct DestroyChannel {
    static constexpr CommandCode kCode = CommandCode::kDestroyChannel;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct CreateCqReply {
    std::uint32_t handle = 0;
    std::uint32_t entries = 0;
    RingReply ring;
};
struct CreateCq {
    static constexpr CommandCode kCode = CommandCode::kCreateCq;
    using Reply = CreateCqReply;
    std::uint32_t context = 0;
    std::uint32_t entries = 0;
    std::uint32_t channel = 0;  // 0: none
    bool ignores_overrun = false;
};

// An event for an armed queue waits until `count` completions have come, or `period_us` have passed
// since the first of them. With either 0 it does not wait.
struct ModifyCq {
    static constexpr CommandCode kCode = CommandCode::kModifyCq;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint16_t count = 0;
    std::uint16_t period_us = 0;
};

struct DestroyCq {
    static constexpr CommandCode kCode = CommandCode::kDestroyCq;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// The new ring holds the entries that were not consumed, from index 0; `first` was the first one's
// index in the old ring, which stays readable until the queue is resized again or destroyed.
struct ResizeCqReply {
    std::uint32_t entries = 0;
    std::uint32_t first = 0;
    RingReply ring;
};
struct ResizeCq {
    static constexpr CommandCode kCode = CommandCode::kResizeCq;
    using Reply = ResizeCqReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t entries = 0;
};

struct QpCapacity {
    std::uint32_t send_requests = 0;
    std::uint32_t receive_requests = 0;
    std::uint32_t send_segments = 0;
    std::uint32_t receive_segments = 0;
    std::uint32_t inline_bytes = 0;
    std::uint32_t tso_header_bytes = 0;  // that a request which is segmented may have
};

constexpr WorkQueueShape send_shape(const QpCapacity& capacity) {
    return send_queue_shape(capacity.send_requests, capacity.send_segments, capacity.inline_bytes,
                            capacity.tso_header_bytes);
}

struct CreateQpReply {
    std::uint32_t handle = 0;
    std::uint32_t qpn = 0;
    QpCapacity capacity;
    RingReply ring;
};
struct CreateQp {
    static constexpr CommandCode kCode = CommandCode::kCreateQp;
    using Reply = CreateQpReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;  // this and the next four: 0 for none
    std::uint32_t send_cq = 0;
    std::uint32_t receive_cq = 0;
    std::uint32_t srq = 0;
    std::uint32_t xrcd = 0;
    Service service = Service::kRc;
    QpCapacity capacity;
    SendOperations operations = kAllSendOperations;
    bool blocks_own_multicast = false;  // of groups it gets no copy of what it sends itself
    std::uint32_t offloads = 0;         // FrameOffload; EOPNOTSUPP for what the device lacks
    // Frames are spread over work queues instead of being received; it has neither sends nor
    // receives of its own, and no states.
    bool spreads = false;
    std::uint32_t indirection_table = 0;
    ReceiveHash hash;
};

// Values that modify_qp sets, as the application gave them; a mask of QpAttr says which.
struct QpValues {
    std::uint32_t state = 0;          // enum ibv_qp_state
    std::uint32_t current_state = 0;  // enum ibv_qp_state
    std::uint32_t path_mtu = 0;       // enum ibv_mtu
    std::uint32_t path_mig_state = 0;
    std::uint32_t qkey = 0;
    std::uint32_t rq_psn = 0;
    std::uint32_t sq_psn = 0;
    std::uint32_t dest_qpn = 0;
    std::uint32_t access = 0;
    std::uint16_t pkey_index = 0;
    std::uint8_t port = 0;
    std::uint8_t timeout = 0;
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry = 0;
    std::uint8_t min_rnr_timer = 0;
    std::uint8_t max_rd_atomic = 0;
    std::uint8_t max_dest_rd_atomic = 0;
    std::uint8_t en_sqd_async_notify = 0;
    AddressVector path;
    AddressVector alternate;
    std::uint16_t alternate_pkey_index = 0;
    std::uint8_t alternate_timeout = 0;
    PacingRule pacing;
};

// With kCap a new ring comes with the reply: it holds the requests that waited, up to these
// indices; the rest is the driver's to copy.
struct ModifyQpReply {
    std::uint32_t state = 0;       // that it is in now, enum ibv_qp_state
    std::uint32_t refused = 0;     // attribute whose value is why it failed; 0: none, or unknown
    std::uint32_t active_mtu = 0;  // of the port, where that is PATH_MTU: an enum ibv_mtu
    QpCapacity capacity;           // this and what follows with kCap only
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
    RingReply ring;
};
struct ModifyQp {
    static constexpr CommandCode kCode = CommandCode::kModifyQp;
    using Reply = ModifyQpReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t mask = 0;
    QpValues values;
    QpCapacity capacity;
};

struct QueryQpReply {
    QpValues values;
    QpCapacity capacity;
    bool draining = false;
};
struct QueryQp {
    static constexpr CommandCode kCode = CommandCode::kQueryQp;
    using Reply = QueryQpReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct DestroyQp {
    static constexpr CommandCode kCode = CommandCode::kDestroyQp;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

enum class SrqType : std::uint32_t { kBasic, kXrc, kTag };  // values of enum ibv_srq_type

// The handle is the number that names an XRC queue on the wire (ibv_get_srq_num(3)).
struct CreateSrqReply {
    std::uint32_t handle = 0;
    std::uint32_t requests = 0;
    std::uint32_t segments = 0;
    std::uint32_t tags = 0;          // of its list; 0: it has none
    std::uint32_t tag_segments = 0;  // of a tagged buffer, at most
    std::uint32_t operations = 0;    // on the list, outstanding
    RingReply ring;
};
struct CreateSrq {
    static constexpr CommandCode kCode = CommandCode::kCreateSrq;
    using Reply = CreateSrqReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    SrqType type = SrqType::kBasic;
    std::uint32_t xrcd = 0;        // XRC only
    std::uint32_t cq = 0;          // XRC and tag matching only
    std::uint32_t tags = 0;        // tag matching only, like the next
    std::uint32_t operations = 0;  // on the list, outstanding
    std::uint32_t requests = 0;
    std::uint32_t segments = 0;
    std::uint32_t limit = 0;
};

// Bits of ModifySrq::mask, as enum ibv_srq_attr_mask.
enum class SrqAttr : std::uint32_t { kMaxRequests = 1U << 0, kLimit = 1U << 1 };
template <>
inline constexpr bool kIsSetMember<SrqAttr> = true;
using SrqAttrs = EnumSet<SrqAttr>;

// With kMaxRequests a new ring comes with the reply: it holds the receives that were not taken,
// from index 0; `first` was the first one's index in the old ring.
struct ModifySrqReply {
    std::uint32_t requests = 0;
    std::uint32_t first = 0;
    RingReply ring;
};
struct ModifySrq {
    static constexpr CommandCode kCode = CommandCode::kModifySrq;
    using Reply = ModifySrqReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t mask = 0;
    std::uint32_t requests = 0;
    std::uint32_t limit = 0;
};

struct QuerySrqReply {
    std::uint32_t requests = 0;
    std::uint32_t segments = 0;
    std::uint32_t limit = 0;
};
struct QuerySrq {
    static constexpr CommandCode kCode = CommandCode::kQuerySrq;
    using Reply = QuerySrqReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct DestroySrq {
    static constexpr CommandCode kCode = CommandCode::kDestroySrq;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// A domain is shared by all who name the same file (ibv_open_xrcd(3)); without a file it is of its
// own.
struct OpenXrcd {
    static constexpr CommandCode kCode = CommandCode::kOpenXrcd;
    using Reply = HandleReply;
    std::uint32_t context = 0;
    bool has_file = false;
    bool create = false;     // O_CREAT
    bool exclusive = false;  // O_EXCL
    std::uint64_t file_device = 0;
    std::uint64_t file_number = 0;
};

struct CloseXrcd {
    static constexpr CommandCode kCode = CommandCode::kCloseXrcd;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// Another handle on an XRC target of a domain that is open here.
struct OpenQp {
    static constexpr CommandCode kCode = CommandCode::kOpenQp;
    using Reply = HandleReply;
    std::uint32_t context = 0;
    std::uint32_t xrcd = 0;
    std::uint32_t qpn = 0;
};

}  // namespace simverbs
