// The command channel of a device: what a driver may ask for that is not a ring entry, as plain
// structs that can cross a process boundary. Objects are named by their handles.
//
// Every command is answered with an errno (0: done); a reply means something only with 0.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "simverbs/model/misuse.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/transport/qp_attributes.hpp"
#include "simverbs/wire/ethernet_headers.hpp"

namespace simverbs {

enum class CommandCode : std::uint32_t {
    kOpenContext,
    kCloseContext,
    kAllocatePd,
    kDeallocatePd,
    kRegisterMr,
    kDeregisterMr,
    kReregisterMr,
    kAllocateNullMr,
    kAdviseMr,
    kAllocateDm,
    kFreeDm,
    kRegisterDmMr,
    kAllocateMw,
    kDeallocateMw,
    kCreateChannel,
    kDestroyChannel,
    kCreateCq,
    kDestroyCq,
    kResizeCq,
    kCreateQp,
    kModifyQp,
    kQueryQp,
    kDestroyQp,
    kQueryPort,
    kQueryGid,
    kQueryPkey,
    kCreateAh,
    kDestroyAh,
    kAttachMulticast,
    kDetachMulticast,
    kCreateSrq,
    kModifySrq,
    kQuerySrq,
    kDestroySrq,
    kOpenXrcd,
    kCloseXrcd,
    kOpenQp,
    kModifyCq,
    kQueryClock,
    kQueryPd,
    kQueryMr,
    kReportMisuse,
    kResolveEthernet,
    kCreateFlow,
    kDestroyFlow,
};
inline constexpr auto kCommandNames = std::to_array<std::string_view>({"open_device",
                                                                       "close_device",
                                                                       "alloc_pd",
                                                                       "dealloc_pd",
                                                                       "reg_mr",
                                                                       "dereg_mr",
                                                                       "rereg_mr",
                                                                       "alloc_null_mr",
                                                                       "advise_mr",
                                                                       "alloc_dm",
                                                                       "free_dm",
                                                                       "reg_dm_mr",
                                                                       "alloc_mw",
                                                                       "dealloc_mw",
                                                                       "create_comp_channel",
                                                                       "destroy_comp_channel",
                                                                       "create_cq",
                                                                       "destroy_cq",
                                                                       "resize_cq",
                                                                       "create_qp",
                                                                       "modify_qp",
                                                                       "query_qp",
                                                                       "destroy_qp",
                                                                       "query_port",
                                                                       "query_gid",
                                                                       "query_pkey",
                                                                       "create_ah",
                                                                       "destroy_ah",
                                                                       "attach_mcast",
                                                                       "detach_mcast",
                                                                       "create_srq",
                                                                       "modify_srq",
                                                                       "query_srq",
                                                                       "destroy_srq",
                                                                       "open_xrcd",
                                                                       "close_xrcd",
                                                                       "open_qp",
                                                                       "modify_cq",
                                                                       "query_rt_values",
                                                                       "import_pd",
                                                                       "import_mr",
                                                                       "misuse",
                                                                       "resolve_eth",
                                                                       "create_flow",
                                                                       "destroy_flow"});
constexpr std::string_view to_string(CommandCode code) {
    return kCommandNames[static_cast<std::size_t>(code)];
}

// A ring that the device made: mapped by address where driver and device share a process, by
// descriptor (one that comes with the reply) where they do not.
struct RingReply {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

struct HandleReply {
    std::uint32_t handle = 0;
};
struct EmptyReply {};

// Opens device `device` of those that the attachment sees. A descriptor comes with the reply: async
// events are read from it (hca/event_pipe.hpp).
struct OpenContext {
    static constexpr CommandCode kCode = CommandCode::kOpenContext;
    using Reply = HandleReply;
    std::uint32_t device = 0;
};

struct CloseContext {
    static constexpr CommandCode kCode = CommandCode::kCloseContext;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
};

struct AllocatePd {
    static constexpr CommandCode kCode = CommandCode::kAllocatePd;
    using Reply = HandleReply;
    std::uint32_t context = 0;
};

struct DeallocatePd {
    static constexpr CommandCode kCode = CommandCode::kDeallocatePd;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct RegisterMrReply {
    std::uint32_t handle = 0;
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
};
struct RegisterMr {
    static constexpr CommandCode kCode = CommandCode::kRegisterMr;
    using Reply = RegisterMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint64_t address = 0;  // where the bytes are
    std::uint64_t length = 0;
    std::uint64_t iova = 0;  // how work requests name the first of them
    std::uint32_t access = 0;
};

struct DeregisterMr {
    static constexpr CommandCode kCode = CommandCode::kDeregisterMr;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// Changes what `flags` (enum ibv_rereg_mr_flags) names; the rest is not looked at.
struct ReregisterMr {
    static constexpr CommandCode kCode = CommandCode::kReregisterMr;
    using Reply = RegisterMrReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t flags = 0;
    std::uint32_t pd = 0;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint64_t iova = 0;
    std::uint32_t access = 0;
};
inline constexpr std::uint32_t kReregisterTranslation = 1U << 0;
inline constexpr std::uint32_t kReregisterPd = 1U << 1;
inline constexpr std::uint32_t kReregisterAccess = 1U << 2;
inline constexpr std::uint32_t kReregisterAll =
    kReregisterTranslation | kReregisterPd | kReregisterAccess;

// A region without memory behind it: reads give zeros, writes go nowhere. Only its lkey opens it.
struct AllocateNullMr {
    static constexpr CommandCode kCode = CommandCode::kAllocateNullMr;
    using Reply = RegisterMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
};

// Whether a range of an on-demand region could be fetched ahead; nothing has to be.
struct AdviseMrReply {
    std::uint64_t address = 0;  // where its bytes are
};
struct AdviseMr {
    static constexpr CommandCode kCode = CommandCode::kAdviseMr;
    using Reply = AdviseMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t lkey = 0;
    std::uint32_t for_writing = 0;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
};

struct AllocateDmReply {
    std::uint32_t handle = 0;
    RingReply memory;
};
struct AllocateDm {
    static constexpr CommandCode kCode = CommandCode::kAllocateDm;
    using Reply = AllocateDmReply;
    std::uint32_t context = 0;
    std::uint32_t log_alignment = 0;
    std::uint64_t length = 0;
};

struct FreeDm {
    static constexpr CommandCode kCode = CommandCode::kFreeDm;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// Zero-based: work requests name bytes by their offset in the region.
struct RegisterDmMr {
    static constexpr CommandCode kCode = CommandCode::kRegisterDmMr;
    using Reply = RegisterMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t dm = 0;
    std::uint32_t access = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

struct AllocateMwReply {
    std::uint32_t handle = 0;
    std::uint32_t rkey = 0;
};
struct AllocateMw {
    static constexpr CommandCode kCode = CommandCode::kAllocateMw;
    using Reply = AllocateMwReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t type = 0;  // enum ibv_mw_type
};

struct DeallocateMw {
    static constexpr CommandCode kCode = CommandCode::kDeallocateMw;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

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
};

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
};

struct ModifyQp {
    static constexpr CommandCode kCode = CommandCode::kModifyQp;
    using Reply = HandleReply;  // the state that it is in now, enum ibv_qp_state
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t mask = 0;
    QpValues values;
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

struct QueryPortReply {
    std::uint32_t state = 0;  // enum ibv_port_state
    std::uint32_t physical_state = 0;
    std::uint32_t max_mtu = 0;
    std::uint32_t active_mtu = 0;
    std::uint32_t gid_entries = 0;
    std::uint32_t bad_pkey_count = 0;
    std::uint16_t pkey_entries = 0;
    std::uint16_t lid = 0;
    std::uint16_t sm_lid = 0;
    std::uint8_t lmc = 0;
    std::uint8_t sm_sl = 0;
    std::uint32_t width = 0;
    std::uint32_t speed = 0;
    std::uint8_t link_layer = 0;  // IBV_LINK_LAYER_*
};
struct QueryPort {
    static constexpr CommandCode kCode = CommandCode::kQueryPort;
    using Reply = QueryPortReply;
    std::uint32_t context = 0;
    std::uint32_t port = 0;
};

struct QueryGidReply {
    std::array<std::uint8_t, 16> gid{};  // zero: the entry holds nothing
    std::uint32_t type = 0;              // enum ibv_gid_type
    std::uint32_t ndev = 0;              // index of the network interface; 0: none
};
struct QueryGid {
    static constexpr CommandCode kCode = CommandCode::kQueryGid;
    using Reply = QueryGidReply;
    std::uint32_t context = 0;
    std::uint32_t port = 0;
    std::uint32_t index = 0;
};

struct QueryPkeyReply {
    std::uint16_t pkey = 0;
};
struct QueryPkey {
    static constexpr CommandCode kCode = CommandCode::kQueryPkey;
    using Reply = QueryPkeyReply;
    std::uint32_t context = 0;
    std::uint32_t port = 0;
    std::uint32_t index = 0;
};

struct CreateAh {
    static constexpr CommandCode kCode = CommandCode::kCreateAh;
    using Reply = HandleReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    AddressVector path;
};

struct DestroyAh {
    static constexpr CommandCode kCode = CommandCode::kDestroyAh;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct AttachMulticast {
    static constexpr CommandCode kCode = CommandCode::kAttachMulticast;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;  // of the queue pair
    std::array<std::uint8_t, 16> gid{};
    std::uint16_t lid = 0;
};

struct DetachMulticast {
    static constexpr CommandCode kCode = CommandCode::kDetachMulticast;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;  // of the queue pair
    std::array<std::uint8_t, 16> gid{};
    std::uint16_t lid = 0;
};

enum class SrqType : std::uint32_t { kBasic, kXrc };  // values of enum ibv_srq_type

// The handle is the number that names an XRC queue on the wire (ibv_get_srq_num(3)).
struct CreateSrqReply {
    std::uint32_t handle = 0;
    std::uint32_t requests = 0;
    std::uint32_t segments = 0;
    RingReply ring;
};
struct CreateSrq {
    static constexpr CommandCode kCode = CommandCode::kCreateSrq;
    using Reply = CreateSrqReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    SrqType type = SrqType::kBasic;
    std::uint32_t xrcd = 0;  // XRC only, like the next
    std::uint32_t cq = 0;
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

// The device's clock, which is the world's; reading it moves nothing.
struct QueryClockReply {
    std::uint64_t now_ps = 0;
};
struct QueryClock {
    static constexpr CommandCode kCode = CommandCode::kQueryClock;
    using Reply = QueryClockReply;
    std::uint32_t context = 0;
};

// What an import needs to know of an object that the context has already.
struct QueryPd {
    static constexpr CommandCode kCode = CommandCode::kQueryPd;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct QueryMrReply {
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
    std::uint64_t length = 0;
};
struct QueryMr {
    static constexpr CommandCode kCode = CommandCode::kQueryMr;
    using Reply = QueryMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t handle = 0;
};

// What the driver found out about the program: for the trace alone.
struct ReportMisuse {
    static constexpr CommandCode kCode = CommandCode::kReportMisuse;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    Misuse misuse = Misuse::kAttributeMissing;
    std::uint32_t subject = 0;
};

// Finds the station that a path leads to. Errors as of resolve_path(); EINVAL on InfiniBand.
struct ResolveEthernetReply {
    fabric::MacAddress mac;
};
struct ResolveEthernet {
    static constexpr CommandCode kCode = CommandCode::kResolveEthernet;
    using Reply = ResolveEthernetReply;
    std::uint32_t context = 0;
    AddressVector path;
};

// Frames that match go to the queue pair. EINVAL for one of another service than raw packets, and
// for a port that has none; EOPNOTSUPP on a device that does not steer; ENOMEM for a rule too many.
struct CreateFlow {
    static constexpr CommandCode kCode = CommandCode::kCreateFlow;
    using Reply = HandleReply;
    std::uint32_t context = 0;
    std::uint32_t qp = 0;
    std::uint32_t type = 0;  // enum ibv_flow_attr_type
    std::uint16_t priority = 0;
    std::uint8_t port = 1;
    std::uint8_t traps = 1;   // 0: the next rule is tried too
    std::uint8_t drops = 0;   // 1: instead of delivering
    std::uint8_t layers = 0;  // FrameLayer
    FrameFields value;
    FrameFields mask;
};

struct DestroyFlow {
    static constexpr CommandCode kCode = CommandCode::kDestroyFlow;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

template <class T>
concept Command =
    std::is_trivially_copyable_v<T> && std::is_trivially_copyable_v<typename T::Reply> && requires {
    { T::kCode } -> std::convertible_to<CommandCode>;
};

}  // namespace simverbs
