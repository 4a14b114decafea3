// Differences between implementations: a personality is data, and engines read it where the
// specification leaves a choice or a real device departs from it.
//
// Crashes and hangs of real implementations are not imitated. The rows are in personalities.hpp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fabric/core/sim_time.hpp"

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/limits.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/timers.hpp"
#include "simverbs/model/wire_opcodes.hpp"

namespace simverbs {

// The steps of a responder, each of which may refuse a request. Their order decides which refusal
// a request with two faults gets.
enum class ResponderCheck : std::uint8_t {
    kDuplicate,    // seen before: answered again, not executed again
    kPsn,          // expected, or a gap
    kSequence,     // first, middle, last in an order that makes a message
    kOpcode,       // known, allowed by the service and by the QP's access flags
    kResources,    // a receive for those that take one, room for a READ or atomic
    kLength,       // payload against path MTU, message against receive and RETH
    kKey,          // key, range, rights, PD
    kExecute,      // placing, reading, the atomic
    kAcknowledge,  // ACK, coalesced where nothing asks for it
};
inline constexpr std::size_t kResponderChecks = 9;
inline constexpr auto kResponderCheckNames =
    std::to_array<std::string_view>({"duplicate", "psn", "sequence", "opcode", "resources",
                                     "length", "key", "execute", "acknowledge"});
static_assert(kResponderCheckNames.size() == kResponderChecks);
constexpr std::string_view to_string(ResponderCheck check) {
    return kResponderCheckNames[static_cast<std::size_t>(check)];
}
using ResponderOrder = std::array<ResponderCheck, kResponderChecks>;

// ibv_post_send in RESET, INIT and RTR. Receives in RESET are refused (IBA C10-22).
enum class PostTooEarly : std::uint8_t {
    kRefuse,          // EINVAL, nothing queued
    kRefuseButQueue,  // EINVAL, yet the request stays in the ring
};
inline constexpr auto kPostTooEarlyNames =
    std::to_array<std::string_view>({"refuse", "refuse but queue"});
constexpr std::string_view to_string(PostTooEarly choice) {
    return kPostTooEarlyNames[static_cast<std::size_t>(choice)];
}

// The treatment of a request that asks for something that cannot be done.
enum class BadRequest : std::uint8_t {
    kRefuse,    // ibv_post_send answers EINVAL, bad_wr points at it
    kComplete,  // it is accepted and completes in error, as completion_faults says
    kIgnore,    // the offending part is ignored
};
inline constexpr auto kBadRequestNames =
    std::to_array<std::string_view>({"refuse", "complete in error", "ignore"});
constexpr std::string_view to_string(BadRequest choice) {
    return kBadRequestNames[static_cast<std::size_t>(choice)];
}

// How a capacity that was asked for is rounded up.
enum class Rounding : std::uint8_t { kNone, kPowerOfTwo, kPowerOfTwoLessOne };
inline constexpr auto kRoundingNames =
    std::to_array<std::string_view>({"none", "power of two", "power of two less one"});
constexpr std::string_view to_string(Rounding rounding) {
    return kRoundingNames[static_cast<std::size_t>(rounding)];
}
constexpr std::uint32_t rounded(std::uint32_t asked, Rounding rounding) {
    switch (rounding) {
        case Rounding::kPowerOfTwo:
            return asked == 0 ? 0 : std::bit_ceil(asked);
        case Rounding::kPowerOfTwoLessOne:
            return std::bit_ceil(asked + 1) - 1;
        case Rounding::kNone:
            break;
    }
    return asked;
}

// lkey and rkey of one region.
enum class KeyStyle : std::uint8_t {
    kDistinct,
    kSame,
    kSameWithRemoteRights,  // and rkey 0 without any
};
inline constexpr auto kKeyStyleNames =
    std::to_array<std::string_view>({"distinct", "same", "same with remote rights"});
constexpr std::string_view to_string(KeyStyle style) {
    return kKeyStyleNames[static_cast<std::size_t>(style)];
}

// Values of attributes that are out of range: refused, or cut to the bits that they have.
enum class AttrValues : std::uint8_t { kRefuse, kRefuseButCutRetries, kCut };
inline constexpr auto kAttrValuesNames =
    std::to_array<std::string_view>({"refuse", "refuse but cut retry counts", "cut"});
constexpr std::string_view to_string(AttrValues choice) {
    return kAttrValuesNames[static_cast<std::size_t>(choice)];
}

struct DeviceIdentity {
    std::string_view firmware;
    std::uint32_t vendor_id;  // an IEEE company number
    std::uint32_t vendor_part_id;
    std::uint32_t hw_ver;
    std::string_view board_id;
    std::string_view hca_type;  // as /sys/class/infiniband/<device>/hca_type says it
};

// The wait before a request is sent again: ack_timeout(max(code, least_code)) x factor.
struct AckTimeoutRule {
    std::int64_t factor_numerator = 1;
    std::int64_t factor_denominator = 1;
    std::uint8_t least_code = 1;
};

// A cause whose consequences differ from those in completion_faults.
struct FaultOverride {
    FaultCause cause;
    WireAnswer wire;
    FaultSide requester;
    FaultSide responder;
};

// An operation that a service lacks on this device: one that kWrOpcodes gives it, or one that
// is answered otherwise than the rest of those that it does not.
struct OpcodeOverride {
    WrOpcode opcode;
    Service service;
    BadRequest posted;
    bool has_function;  // in ibv_qp_ex
};

struct Personality {
    std::string_view name;
    std::string_view key;  // the name, or that of its variant without Ethernet
    DeviceIdentity identity;
    DeviceLimits limits;
    ResponderOrder responder_order;
    AckTimeoutRule ack_timeout_rule;
    std::span<const FaultOverride> overrides;
    std::span<const OpcodeOverride> opcode_overrides;
    bool cause_as_vendor_err;      // vendor_err is the number of the cause
    bool connectx6_vendor_errors;  // vendor_err as measured on that device, 0 where unknown

    // Queue pair states
    bool reset_to_err_by_modify;
    bool resizes_queues;             // CAP in modify_qp
    bool sqd_to_rts_while_draining;  // else EINVAL until drained
    bool send_error_enters_sqe;      // UC, UD, raw; else ERR like the others
    bool cur_state_is_believed;      // CUR_STATE replaces the real state instead of being compared
    bool drained_event_unasked;      // SQ_DRAINED without EN_SQD_ASYNC_NOTIFY
    bool rts_starts_sends_of_sqd;    // else the next doorbell does
    bool query_reports_cur_state;
    bool unset_path_reads_global;  // query_qp before AV was given: is_global, an MTU of 256
    bool av_in_sqd_implies_port;   // Linux adds PORT, which a UC QP may not change in SQD
    AttrValues attr_values;

    // Posting
    PostTooEarly post_send_before_rts;
    bool flushes_receives_posted_in_err;
    BadRequest unknown_opcode;
    BadRequest opcode_not_for_service;
    BadRequest atomic_not_eight_bytes;  // kRefuse only below 8 bytes, kIgnore only above
    BadRequest atomic_misaligned;
    BadRequest inline_on_read;
    bool initiator_depth_zero_completes;  // else the request never completes
    bool checks_message_length;           // max_msg_sz, and the MTU on UD
    bool checks_pd_of_address_handle;
    bool checks_values_of_address_handle;
    bool well_known_qkey_rule;  // remote_qkey with the high bit: the QP's own is sent

    // Completions
    bool slot_freed_by_polled_completion;  // else as soon as it is acknowledged
    bool failed_completion_keeps_opcode;   // else 0
    bool send_completion_has_length;       // byte_len and WITH_IMM on sends
    bool connected_receive_has_grh_flag;
    bool failed_unsignaled_bind_completes;
    bool cq_overrun_kills_cq;  // else the entry is lost, CQ_ERR each time
    bool purges_completions;   // of a queue pair that is destroyed or reset, of an XRC queue

    // Extended queues
    bool checks_extended_cq_masks;  // unknown flags at creation, unknown bits of a poll
    bool cq_may_ignore_overrun;     // else EOPNOTSUPP
    bool imports_objects;           // of the same process, by descriptor and handle
    bool thread_domains;            // ibv_alloc_td, ibv_alloc_parent_domain
    int no_room_in_batch_errno;     // ibv_wr_complete: queue full, too many SGEs or inline bytes

    // Retries
    bool rnr_wait_uses_ack_timer;

    // Events
    bool raises_queue_pair_events;  // COMM_EST, QP_*, LAST_WQE_REACHED
    bool srq_limit_fires_when_already_below;
    bool cq_arm_tells_of_waiting;  // ibv_req_notify_cq(cq, 0): an event if completions are there

    // Memory
    KeyStyle key_style;
    bool zero_length_mr;                   // of device memory, too
    std::uint32_t device_memory_granule;   // offsets and lengths of copies are multiples of it
    int device_memory_out_of_range_errno;  // of a copy
    bool rereg_mr;
    bool rereg_keeps_keys;    // else a changed region has new ones
    bool null_mr;             // ibv_alloc_null_mr
    bool zero_based_regions;  // else ZERO_BASED is accepted and without effect
    int dereg_of_bound_mr_errno;
    bool window_bounds_hold;  // else only the region's
    bool bind_checks_range;   // else the access does
    // Receives of a shared queue: whose protection domain their local keys have to be of.
    bool shared_receives_by_their_own_pd;  // else the queue pair's
    bool type1_bind_by_work_request;
    bool type2_bind_updates_window;  // writes the new rkey into struct ibv_mw

    // Creation
    Rounding send_queue_rounding;
    Rounding receive_queue_rounding;
    Rounding srq_rounding;
    Rounding cq_rounding;
    bool create_returns_rounded;  // else only query_qp shows it
    bool checks_srq_attr_mask;    // modify_srq: EINVAL for unknown bits and for none
    bool srq_without_receives;    // max_wr 0 at creation, else EINVAL
    bool srq_limit_at_creation;   // else ibv_create_srq ignores it
    // An inline request lies where segments would: as many are granted as it needs, and this times
    // max_send_sge inline bytes. 0: what was asked.
    std::uint32_t inline_bytes_per_sge;
    // Inline data may fill the last block of its request (send_request_layout.hpp), whatever was
    // asked.
    bool inline_fills_block;

    // Fabric
    bool reports_port_speed;  // ibv_query_port_speed, else EOPNOTSUPP
    bool multicast_loopback;
    bool blocks_own_multicast;  // BLOCK_SELF_MCAST_LB, else EOPNOTSUPP
    // RoCE v2: data may be marked, marks are answered by CNPs, and those slow a queue pair down.
    bool reacts_to_congestion;
    // wc.sl of a datagram on RoCE says what kind of packet it was (IBA A17.4.5.1 asks for a flag,
    // and mlx5 has it there): bit 3 is UDP, the low bits 0 a GRH, 1 IPv6, 2 IPv4. Without: 0.
    bool packet_kind_in_sl;
};

// Returns true if the device has operations of this kind, by what it reports of itself.
constexpr bool offers(const Personality& personality, MessageKind kind) {
    const DeviceCaps caps = personality.limits.caps;
    switch (kind) {
        case MessageKind::kFlush:
            return caps.intersects(DeviceCap::kFlushGlobal | DeviceCap::kFlushPersistent);
        case MessageKind::kAtomicWrite:
            return caps.contains(DeviceCap::kAtomicWrite);
        default:
            return true;
    }
}

constexpr const OpcodeOverride* find_override(const Personality& personality, WrOpcode opcode,
                                              Service service) {
    for (const OpcodeOverride& row : personality.opcode_overrides) {
        if (row.opcode == opcode && row.service == service) {
            return &row;
        }
    }
    return nullptr;
}

// Returns true if a queue pair of that service carries such requests out.
constexpr bool carries_out(const Personality& personality, const WrOpcodeProperties& opcode,
                           Service service) {
    const bool offloads =
        opcode.opcode != WrOpcode::kTso || personality.limits.tso_services.contains(service);
    return opcode.services.contains(service) && offers(personality, opcode.message) && offloads &&
           find_override(personality, opcode.opcode, service) == nullptr;
}

// Returns true if ibv_create_qp_ex() grants the function that posts them.
constexpr bool has_function(const Personality& personality, const WrOpcodeProperties& opcode,
                            Service service) {
    const OpcodeOverride* row = find_override(personality, opcode.opcode, service);
    return row != nullptr ? row->has_function : carries_out(personality, opcode, service);
}

// Returns the treatment of an opcode that the service lacks.
constexpr BadRequest not_for_service(const Personality& personality, WrOpcode opcode,
                                     Service service) {
    const OpcodeOverride* row = find_override(personality, opcode, service);
    return row != nullptr ? row->posted : personality.opcode_not_for_service;
}

// Returns the consequences of a cause with this personality.
constexpr CompletionFault consequences(const Personality& personality, FaultCause cause) {
    CompletionFault row = fault_row(cause);
    for (const FaultOverride& override_row : personality.overrides) {
        if (override_row.cause == cause) {
            row.wire = override_row.wire;
            row.requester = override_row.requester;
            row.responder = override_row.responder;
        }
    }
    return row;
}

// vendor_err of a completion on one side of a fault.
constexpr std::uint32_t vendor_err(const Personality& personality, FaultCause cause,
                                   const FaultSide& side) {
    if (personality.connectx6_vendor_errors) {
        return side.connectx6_vendor_err;
    }
    return personality.cause_as_vendor_err ? static_cast<std::uint32_t>(cause) : 0U;
}

// Where an asynchronous trigger leads with this personality.
constexpr std::optional<QpState> next_state(const Personality& personality, QpState from,
                                            QpTrigger trigger, Service service) {
    const std::optional<QpState> to = next_state(from, trigger, service);
    if (to == QpState::kSqe && !personality.send_error_enters_sqe) {
        return QpState::kErr;
    }
    return to;
}

// The row that ibv_modify_qp follows with this personality, or nullptr where it answers EINVAL.
constexpr const QpTransition* find_modify(const Personality& personality, QpState from, QpState to,
                                          Service service) {
    if (from == QpState::kReset && to == QpState::kErr && !personality.reset_to_err_by_modify) {
        return nullptr;
    }
    return find_transition(from, to, QpTrigger::kModify, service);
}

// Returns what is wrong with the attributes given for that row.
constexpr QpAttrCheck check_modify(const Personality& personality, const QpTransition& row,
                                   Service service, QpAttrs given) {
    const bool in_sqd = row.from == QpState::kSqd && row.to == QpState::kSqd;
    if (in_sqd && personality.av_in_sqd_implies_port && given.contains(QpAttr::kAv)) {
        given = given | QpAttr::kPort;
    }
    return check_attrs(row, service, given, personality.resizes_queues);
}

// One wait for an acknowledgement, or nothing where the requester waits for ever.
constexpr std::optional<fabric::SimDuration> ack_timeout(const Personality& personality,
                                                         std::uint8_t code) {
    const AckTimeoutRule& rule = personality.ack_timeout_rule;
    const auto in_code = static_cast<std::uint8_t>(code % kAckTimeoutCodes);
    if (in_code == 0) {
        return std::nullopt;
    }
    const auto wait = ack_timeout(in_code < rule.least_code ? rule.least_code : in_code);
    return wait.value_or(fabric::SimDuration::zero()) / rule.factor_denominator *
           rule.factor_numerator;
}

}  // namespace simverbs
