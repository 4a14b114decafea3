// The contents of the rings that the driver and the device share: work queue entries and completion
// queue entries, as plain structs without pointers.
//
// The device trusts none of it: it copies an entry first and checks the copy (DESIGN section 6).
// Index words run freely over 32 bits; a slot is `index & (slots - 1)`.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace simverbs {

// One scatter/gather element; the layout of struct ibv_sge, which abi/ asserts.
struct Segment {
    std::uint64_t address = 0;
    std::uint32_t length = 0;
    std::uint32_t lkey = 0;
};
static_assert(sizeof(Segment) == 16);

// The head of a slot of the send queue; segments, or the bytes of an inline request, follow it.
struct SendWqe {
    std::uint64_t wr_id = 0;
    std::uint64_t remote_address = 0;
    std::uint64_t compare_add = 0;
    std::uint64_t swap = 0;
    std::uint32_t rkey = 0;
    std::uint32_t immediate = 0;  // network order, or the rkey that *_INV invalidates
    std::uint32_t inline_length = 0;
    std::uint16_t segment_count = 0;
    std::uint8_t opcode = 0;  // enum ibv_wr_opcode
    std::uint8_t flags = 0;   // enum ibv_send_flags
    std::uint32_t remote_qpn = 0;
    std::uint32_t remote_qkey = 0;
    std::uint32_t address_handle = 0;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(SendWqe) == 64);

// The arguments of a BIND_MW. It travels in fields of SendWqe that mean something else in other
// requests.
struct WindowBinding {
    std::uint32_t window = 0;   // its handle
    std::uint32_t lkey = 0;     // of the region
    std::uint32_t rkey = 0;     // of the window from then on: the lowest byte counts
    std::uint32_t access = 0;   // enum ibv_access_flags
    std::uint64_t address = 0;  // as the region's own keys name it
    std::uint64_t length = 0;   // 0: unbinds a type 1 window
};
constexpr void put_binding(const WindowBinding& binding, SendWqe& wqe) {
    wqe.address_handle = binding.window;
    wqe.remote_qpn = binding.lkey;
    wqe.remote_qkey = binding.access;
    wqe.rkey = binding.rkey;
    wqe.remote_address = binding.address;
    wqe.swap = binding.length;
}
constexpr WindowBinding binding_of(const SendWqe& wqe) {
    return {wqe.address_handle, wqe.remote_qpn,     wqe.rkey,
            wqe.remote_qkey,    wqe.remote_address, wqe.swap};
}

// The arguments of a FLUSH beside address and rkey; likewise.
struct FlushRequest {
    std::uint32_t length = 0;    // of the range
    std::uint8_t placement = 0;  // enum ibv_placement_type
    std::uint8_t reach = 0;      // enum ibv_selectivity_level
};
constexpr void put_flush(const FlushRequest& flush, SendWqe& wqe) {
    wqe.compare_add = flush.length;
    wqe.swap = static_cast<std::uint64_t>(flush.placement) | static_cast<std::uint64_t>(flush.reach)
                                                                 << 8U;
}
constexpr FlushRequest flush_of(const SendWqe& wqe) {
    return {static_cast<std::uint32_t>(wqe.compare_add), static_cast<std::uint8_t>(wqe.swap),
            static_cast<std::uint8_t>(wqe.swap >> 8U)};
}

// The arguments of a request that is cut into frames (TSO): its header stands behind the room for
// all segments that a request of its queue may have.
struct Segmentation {
    std::uint32_t header_bytes = 0;
    std::uint16_t segment_bytes = 0;  // of the data in a frame, at most
};
constexpr void put_segmentation(const Segmentation& segmentation, SendWqe& wqe) {
    wqe.inline_length = segmentation.header_bytes;
    wqe.compare_add = segmentation.segment_bytes;
}
constexpr Segmentation segmentation_of(const SendWqe& wqe) {
    return {wqe.inline_length, static_cast<std::uint16_t>(wqe.compare_add)};
}

// A request of the device's own, which goes out among those of the send queue: the READ of a
// rendezvous, or the FIN after it. `tail` holds its one segment, or its inline bytes.
struct DeviceWork {
    SendWqe wqe;
    std::array<std::byte, 16> tail{};
};

struct RecvWqe {
    std::uint64_t wr_id = 0;
    std::uint32_t segment_count = 0;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(RecvWqe) == 16);

// An operation on the tag list of a shared receive queue, as it lies in its ring.
enum class TagOperationCode : std::uint8_t { kAdd, kDelete, kSync };  // enum ibv_ops_wr_opcode
struct TagOperation {
    std::uint64_t wr_id = 0;
    std::uint64_t receive_wr_id = 0;  // this and the next three: to add
    std::uint64_t tag = 0;
    std::uint64_t mask = 0;
    Segment segment;  // of length 0: none
    std::uint16_t unexpected = 0;
    std::uint8_t code = 0;   // enum TagOperationCode
    std::uint8_t flags = 0;  // enum ibv_ops_flags
    std::uint8_t handle = 0;
    std::uint8_t generation = 0;
    std::uint16_t reserved = 0;
    std::uint64_t unused = 0;
};
static_assert(sizeof(TagOperation) == 64);
// Bits of TagOperation::flags.
inline constexpr std::uint8_t kTagSignaled = 1U << 0;
inline constexpr std::uint8_t kTagReports = 1U << 1;  // `unexpected` says what software has seen

// kShared: the receive came from a shared receive queue; kWork: from a work queue, which `qpn` then
// names; kTag: of the tag list of a shared receive queue, an operation or a buffer of it.
enum class CompletedQueue : std::uint8_t { kSend, kReceive, kShared, kWork, kTag };

struct Cqe {
    std::uint64_t wr_id = 0;
    std::uint64_t timestamp_ps = 0;
    std::uint32_t vendor_error = 0;
    std::uint32_t byte_length = 0;
    std::uint32_t immediate = 0;  // network order, or the invalidated rkey
    std::uint32_t qpn = 0;
    std::uint32_t source_qpn = 0;
    std::uint32_t wc_flags = 0;  // enum ibv_wc_flags
    // Polling this entry frees every slot of `queue` before this index; of a shared receive queue,
    // whose number this then is, it frees one. kTag: see put_tag_place().
    std::uint32_t freed_to = 0;
    std::uint16_t pkey_index = 0;
    std::uint16_t slid = 0;
    std::uint32_t flow_tag = 0;  // of a raw packet: its rule's
    std::uint16_t cvlan = 0;     // of a raw packet: the tag that was taken out of it; 0: none
    std::uint8_t status = 0;     // enum ibv_wc_status
    std::uint8_t opcode = 0;     // enum ibv_wc_opcode
    CompletedQueue queue = CompletedQueue::kSend;
    std::uint8_t sl = 0;
    std::uint8_t dlid_path_bits = 0;
    std::uint8_t tag_generation = 0;  // of a tag's handle
};
static_assert(sizeof(Cqe) == 64);

// The fields of a completion about a message's tag header. It travels in fields that mean something
// on datagrams and raw packets alone, which have no tags.
struct TagInfo {
    std::uint64_t tag = 0;
    std::uint32_t context = 0;
};
constexpr void put_tag_info(const TagInfo& info, Cqe& entry) {
    entry.flow_tag = static_cast<std::uint32_t>(info.tag);
    entry.slid = static_cast<std::uint16_t>(info.tag >> 32U);
    entry.pkey_index = static_cast<std::uint16_t>(info.tag >> 48U);
    entry.cvlan = static_cast<std::uint16_t>(info.context);
    entry.sl = static_cast<std::uint8_t>(info.context >> 16U);
    entry.dlid_path_bits = static_cast<std::uint8_t>(info.context >> 24U);
}
constexpr TagInfo tag_info_of(const Cqe& entry) {
    return {
        std::uint64_t{entry.pkey_index} << 48U | std::uint64_t{entry.slid} << 32U | entry.flow_tag,
        std::uint32_t{entry.dlid_path_bits} << 24U | std::uint32_t{entry.sl} << 16U | entry.cvlan};
}

// Where an entry of kTag belongs: in `freed_to`, the number of the shared receive queue and the
// tag's handle. An operation's slots, before which all are free, are counted in `flow_tag`.
inline constexpr unsigned kTagHandleShift = 24;
constexpr void put_tag_place(std::uint32_t queue, std::uint8_t handle, Cqe& entry) {
    entry.queue = CompletedQueue::kTag;
    entry.freed_to = queue | std::uint32_t{handle} << kTagHandleShift;
}
constexpr std::uint32_t tag_queue_of(const Cqe& entry) {
    return entry.freed_to & ((1U << kTagHandleShift) - 1U);
}
constexpr std::uint8_t tag_handle_of(const Cqe& entry) {
    return static_cast<std::uint8_t>(entry.freed_to >> kTagHandleShift);
}

inline constexpr std::size_t kCacheLine = 64;

struct SharedIndex {
    std::atomic<std::uint32_t> value;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// The head of a queue pair's ring memory; the send slots and then the receive slots follow. A
// cache line has one writer.
struct QueuePairRings {
    alignas(kCacheLine) SharedIndex state;          // enum QpState, written by the device
    SharedIndex sends_done;                         // where done is free, polled or not; the same
    alignas(kCacheLine) SharedIndex send_producer;  // written by the driver
    SharedIndex receive_producer;                   // the same
};

// The head of a shared receive queue's ring memory; the slots follow.
struct SharedReceiveRing {
    alignas(kCacheLine) SharedIndex producer;  // written by the driver
};

// The head of the operations on a tag list, which lie behind the receives of a shared receive
// queue; their slots follow.
struct TagOperationRing {
    alignas(kCacheLine) SharedIndex producer;  // written by the driver
};

// The head of a work queue's ring memory; the slots follow.
struct WorkQueueRing {
    SharedIndex state;     // enum WqState, written by the device
    SharedIndex producer;  // written by the driver
};

// The completions that a consumer asked to be told of (ibv_req_notify_cq).
enum class CqArm : std::uint32_t { kNone, kNext, kSolicited };

// The head of a completion queue's ring memory; the entries follow.
struct CompletionRing {
    alignas(kCacheLine) SharedIndex producer;  // written by the device
    alignas(kCacheLine) SharedIndex consumer;  // written by the driver
    SharedIndex poller;  // likewise: which actor of the process polled it last; 0: none has
    alignas(kCacheLine) SharedIndex arm;  // enum CqArm: set by the driver, cleared by the device
};

// Geometry of one work queue: a power of two of slots, a limit as the application asked.
struct WorkQueueShape {
    std::uint32_t limit = 0;   // work requests that may be outstanding
    std::uint32_t slots = 0;   // a power of two, at least `limit`; 0 without a queue
    std::uint32_t stride = 0;  // bytes a slot
    std::uint32_t max_segments = 0;

    [[nodiscard]] constexpr std::size_t bytes() const {
        return static_cast<std::size_t>(slots) * stride;
    }
};

constexpr std::uint32_t slots_for(std::uint32_t limit) {
    return limit == 0 ? 0 : std::bit_ceil(limit);
}

constexpr WorkQueueShape send_queue_shape(std::uint32_t limit, std::uint32_t max_segments,
                                          std::uint32_t max_inline,
                                          std::uint32_t max_tso_header = 0) {
    const auto segments = static_cast<std::uint32_t>(max_segments * sizeof(Segment));
    const std::uint32_t gathered = segments + max_tso_header;
    const std::uint32_t tail = gathered > max_inline ? gathered : max_inline;
    const std::uint32_t stride =
        static_cast<std::uint32_t>(sizeof(SendWqe)) + ((tail + 15U) & ~15U);
    return {limit, slots_for(limit), stride, max_segments};
}

constexpr WorkQueueShape receive_queue_shape(std::uint32_t limit, std::uint32_t max_segments) {
    const auto segments = static_cast<std::uint32_t>(max_segments * sizeof(Segment));
    return {limit, slots_for(limit), static_cast<std::uint32_t>(sizeof(RecvWqe)) + segments,
            max_segments};
}

constexpr std::size_t queue_pair_ring_bytes(const WorkQueueShape& send,
                                            const WorkQueueShape& receive) {
    return sizeof(QueuePairRings) + send.bytes() + receive.bytes();
}

constexpr std::size_t shared_receive_ring_bytes(const WorkQueueShape& shape) {
    return sizeof(SharedReceiveRing) + shape.bytes();
}

constexpr WorkQueueShape tag_operation_shape(std::uint32_t limit, std::uint32_t max_segments) {
    return {limit, slots_for(limit), sizeof(TagOperation), max_segments};
}

// Where the operations on a tag list begin in the ring memory of a shared receive queue.
constexpr std::size_t tag_operation_ring_at(const WorkQueueShape& receives) {
    return (shared_receive_ring_bytes(receives) + kCacheLine - 1) / kCacheLine * kCacheLine;
}

constexpr std::size_t tag_matching_ring_bytes(const WorkQueueShape& receives,
                                              const WorkQueueShape& operations) {
    return tag_operation_ring_at(receives) + sizeof(TagOperationRing) + operations.bytes();
}

constexpr std::size_t work_queue_ring_bytes(const WorkQueueShape& shape) {
    return sizeof(WorkQueueRing) + shape.bytes();
}

constexpr std::size_t completion_ring_bytes(std::uint32_t slots) {
    return sizeof(CompletionRing) + static_cast<std::size_t>(slots) * sizeof(Cqe);
}

}  // namespace simverbs
