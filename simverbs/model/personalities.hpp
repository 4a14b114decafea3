// The personalities that exist: the specification's, ConnectX-6's and Linux Soft-RoCE's.
//
// `spec` is the default. `connectx6` holds what others measured on that hardware or what its driver
// shows, and follows `spec` elsewhere; `rxe` holds what rdma_rxe of Linux 6.1 answered to a
// program of 550 questions. A judgement without a measurement is marked so in README.md.
#pragma once

#include <array>
#include <cerrno>
#include <string_view>

#include "simverbs/model/personality.hpp"

namespace simverbs {

namespace detail {
// IBA 9.7.4.1, figure of the responder's checks.
inline constexpr ResponderOrder kSpecOrder = {
    ResponderCheck::kDuplicate, ResponderCheck::kPsn,       ResponderCheck::kSequence,
    ResponderCheck::kOpcode,    ResponderCheck::kResources, ResponderCheck::kLength,
    ResponderCheck::kKey,       ResponderCheck::kExecute,   ResponderCheck::kAcknowledge,
};
// Measured on ConnectX-5 and 6: QP access, key, bounds, placement.
inline constexpr ResponderOrder kConnectX6Order = {
    ResponderCheck::kDuplicate, ResponderCheck::kPsn,     ResponderCheck::kSequence,
    ResponderCheck::kOpcode,    ResponderCheck::kKey,     ResponderCheck::kResources,
    ResponderCheck::kLength,    ResponderCheck::kExecute, ResponderCheck::kAcknowledge,
};

// rxe reports every bad lkey or receive as LOC_QP_OP_ERR, and stops the queue pair of a receiver
// where the specification drops the message.
inline constexpr FaultSide kRxeSend = send_fails(WcStatus::kLocQpOpErr);
inline constexpr FaultSide kRxeReceive = receive_fails(WcStatus::kLocQpOpErr);
inline constexpr FaultSide kRxeRemOp = send_fails(WcStatus::kRemOpErr);
inline constexpr auto kRxeOverrides = std::to_array<FaultOverride>({
    {FaultCause::kGatherKey, WireAnswer::kNothing, kRxeSend, kUntouched},
    {FaultCause::kResponseMismatch, WireAnswer::kAck, send_fails(WcStatus::kFatalErr), kUntouched},
    {FaultCause::kReceiveTooSmall, WireAnswer::kNak3, kRxeRemOp, kRxeReceive},
    {FaultCause::kReceiveKey, WireAnswer::kNak3, kRxeRemOp, kRxeReceive},
    {FaultCause::kReceiveRange, WireAnswer::kNak3, kRxeRemOp, kRxeReceive},
    {FaultCause::kReceiveRight, WireAnswer::kNak3, kRxeRemOp, kRxeReceive},
    {FaultCause::kImmediateWriteRefused, WireAnswer::kNak2, send_fails(WcStatus::kRemAccessErr),
     receive_fails(WcStatus::kRemAccessErr)},
    {FaultCause::kLocalInvalidateRefused, WireAnswer::kNothing, kRxeSend, kUntouched},
    {FaultCause::kRemoteInvalidateRefused, WireAnswer::kAck, kCompletes,
     receive_fails(WcStatus::kRemInvReqErr)},
    {FaultCause::kUnackedReceiveBad, WireAnswer::kNothing, kCompletes, kRxeReceive},
    {FaultCause::kUnackedReceiveTooSmall, WireAnswer::kNothing, kCompletes, kRxeReceive},
    {FaultCause::kDatagramAboveSrqReceive, WireAnswer::kNothing, kCompletes, kRxeReceive},
});

// Keys are invalidated over RC alone; librxe looks at the service of a bind before it posts.
inline constexpr auto kRxeOpcodes = std::to_array<OpcodeOverride>({
    {WrOpcode::kSendWithInv, Service::kUc, BadRequest::kComplete, true},
    {WrOpcode::kLocalInv, Service::kUc, BadRequest::kComplete, false},
    {WrOpcode::kBindMw, Service::kUd, BadRequest::kRefuse, false},
});

// As ibv_devinfo -v shows an InfiniBand port of that device; features of Ethernet ports as `spec`.
constexpr DeviceLimits connectx6_limits() {
    DeviceLimits limits = kSpecLimits;
    limits.max_mr_bytes = ~0ULL;
    limits.page_size_cap = 0xFFFF'FFFF'FFFF'F000;
    limits.caps = DeviceCaps(DeviceCap::kBadPkeyCntr) | DeviceCap::kBadQkeyCntr |
                  DeviceCap::kAutoPathMig | DeviceCap::kChangePhyPort |
                  DeviceCap::kPortActiveEvent | DeviceCap::kSysImageGuid | DeviceCap::kRcRnrNakGen |
                  DeviceCap::kMemWindow | DeviceCap::kXrc | DeviceCap::kMemMgtExtensions |
                  DeviceCap::kMemWindowType2B | DeviceCap::kUdIpCsum |
                  DeviceCap::kManagedFlowSteering | DeviceCap::kRawScatterFcs |
                  DeviceCap::kPciWriteEndPadding;
    limits.max_qp = 131'072;
    limits.max_sge = 30;
    limits.max_sge_rd = 30;
    limits.max_cq = 16'777'216;
    // Real ones report 16,777,216 of regions and windows each and 8,388,608 shared queues. They
    // share 24-bit numbers here as there; what is reported can be had from one context.
    limits.max_mr = 2'097'152;
    limits.max_pd = 8'388'608;
    limits.max_mw = 2'097'152;
    limits.max_ah = 2'147'483'647;  // real ones report it, too; sums in an int overflow
    limits.max_srq = 2'097'152;
    limits.max_res_rd_atom = 131'072 * 16;
    limits.max_mcast_grp = 2'097'152;
    limits.max_mcast_qp_attach = 240;
    limits.max_total_mcast_qp_attach = 2'097'152 * 240;
    limits.local_ca_ack_delay = 16;
    limits.completion_vectors = 63;
    limits.odp.uc = 0;
    limits.odp.ud = 0x01;   // send
    limits.odp.xrc = 0x3D;  // all but receive
    limits.completion_timestamp_mask = 0x7FFF'FFFF'FFFF'FFFF;
    limits.core_clock_khz = 156'250;
    limits.max_completion_counters = 0;
    return limits;
}

constexpr DeviceLimits rxe_limits() {
    DeviceLimits limits;
    limits.max_mr_bytes = ~0ULL;
    limits.page_size_cap = 0xFFFF'F000;
    limits.caps = DeviceCaps::from_bits(19'020'918);
    limits.max_qp = 1'048'560;
    limits.max_qp_wr = 1'048'576;
    limits.max_sge = 32;
    limits.max_sge_rd = 32;
    limits.max_inline_bytes = 512;
    limits.max_cq = 1'048'576;
    limits.max_cqe = 32'767;
    limits.max_mr = 524'287;
    limits.max_pd = 1'048'576;
    limits.max_mw = 524'287;
    limits.max_ah = 32'767;
    limits.max_srq = 917'503;
    limits.max_srq_wr = 1'048'576;
    limits.max_srq_sge = 27;
    limits.max_qp_rd_atom = 128;
    limits.max_qp_init_rd_atom = 128;
    limits.max_res_rd_atom = 258'048;
    limits.atomic_scope = AtomicScope::kHca;
    limits.max_mcast_grp = 8'192;
    limits.max_mcast_qp_attach = 56;
    limits.max_total_mcast_qp_attach = 458'752;
    limits.max_pkeys = 64;
    limits.local_ca_ack_delay = 15;
    limits.completion_vectors = 2;
    limits.port = {.max_message_bytes = 8'388'608,
                   .gid_entries = 1'024,
                   .pkey_entries = 1,
                   .max_mtu = fabric::Mtu::k4096,
                   .ethernet_mtu = 9'000,
                   .has_roce_v1 = false,
                   .max_vl_num = 1,
                   .subnet_timeout = 0,
                   .infiniband_caps = {},
                   .ethernet_caps = PortCap::kCmSup};
    return limits;
}
}  // namespace detail

inline constexpr Personality kSpec = {
    .name = "spec",
    .key = "spec",
    // A locally administered company number: no vendor's, so no program takes a vendor's path.
    .identity = {.firmware = "1.0.0",
                 .vendor_id = 0x025653,
                 .vendor_part_id = 1,
                 .hw_ver = 1,
                 .board_id = "SIMVERBS_SPEC",
                 .hca_type = "simverbs"},
    .limits = kSpecLimits,
    .responder_order = detail::kSpecOrder,
    .ack_timeout_rule = {},
    .overrides = {},
    .opcode_overrides = {},
    .cause_as_vendor_err = true,
    .connectx6_vendor_errors = false,
    .reset_to_err_by_modify = true,
    .resizes_queues = true,
    .sqd_to_rts_while_draining = false,
    .send_error_enters_sqe = true,
    .cur_state_is_believed = false,
    .drained_event_unasked = false,
    .rts_starts_sends_of_sqd = true,
    .query_reports_cur_state = true,
    .unset_path_reads_global = false,
    .av_in_sqd_implies_port = false,
    .attr_values = AttrValues::kRefuse,
    .post_send_before_rts = PostTooEarly::kRefuse,
    .flushes_receives_posted_in_err = true,
    .unknown_opcode = BadRequest::kRefuse,
    .opcode_not_for_service = BadRequest::kComplete,
    .atomic_not_eight_bytes = BadRequest::kComplete,
    .atomic_misaligned = BadRequest::kComplete,
    .inline_on_read = BadRequest::kRefuse,
    .initiator_depth_zero_completes = true,
    .checks_message_length = true,
    .checks_pd_of_address_handle = true,
    .checks_values_of_address_handle = true,
    .well_known_qkey_rule = true,
    .slot_freed_by_polled_completion = true,
    .failed_completion_keeps_opcode = true,
    .send_completion_has_length = false,
    .connected_receive_has_grh_flag = false,
    .failed_unsignaled_bind_completes = true,
    .cq_overrun_kills_cq = true,
    .purges_completions = true,
    .checks_extended_cq_masks = true,
    .cq_may_ignore_overrun = true,
    .imports_objects = true,
    .thread_domains = true,
    .no_room_in_batch_errno = ENOMEM,
    .rnr_wait_uses_ack_timer = false,
    .raises_queue_pair_events = true,
    .srq_limit_fires_when_already_below = true,
    .cq_arm_tells_of_waiting = false,
    .key_style = KeyStyle::kDistinct,
    .zero_length_mr = false,
    .device_memory_granule = 1,
    .device_memory_out_of_range_errno = EINVAL,
    .rereg_mr = true,
    .rereg_keeps_keys = false,
    .null_mr = true,
    .zero_based_regions = true,
    .dereg_of_bound_mr_errno = EBUSY,
    .window_bounds_hold = true,
    .bind_checks_range = true,
    .shared_receives_by_their_own_pd = true,
    .type1_bind_by_work_request = false,
    .type2_bind_updates_window = true,
    .send_queue_rounding = Rounding::kNone,
    .receive_queue_rounding = Rounding::kNone,
    .srq_rounding = Rounding::kNone,
    .cq_rounding = Rounding::kNone,
    .create_returns_rounded = true,
    .checks_srq_attr_mask = true,
    .srq_without_receives = false,
    .srq_limit_at_creation = false,
    .inline_bytes_per_sge = 0,
    .inline_fills_block = false,
    .reports_port_speed = true,
    .multicast_loopback = true,
    .blocks_own_multicast = true,
    .reacts_to_congestion = true,
    .packet_kind_in_sl = true,
};

namespace detail {
constexpr Personality connectx6() {
    Personality p = kSpec;
    p.name = p.key = "connectx6";
    p.identity = {.firmware = "20.31.1014",
                  .vendor_id = 0x02C9,
                  .vendor_part_id = 4123,
                  .hw_ver = 0,
                  .board_id = "MT_0000000223",
                  .hca_type = "MT4123"};
    p.limits = connectx6_limits();
    p.responder_order = kConnectX6Order;
    // Two measured points, 3.67 s at 14 and 58.6 s at 20 with eight tries, fit this rule.
    p.ack_timeout_rule = {.factor_numerator = 1707, .factor_denominator = 1000, .least_code = 16};
    p.cause_as_vendor_err = false;
    p.connectx6_vendor_errors = true;
    p.reset_to_err_by_modify = false;
    p.resizes_queues = false;
    p.sqd_to_rts_while_draining = true;
    p.av_in_sqd_implies_port = true;
    p.attr_values = AttrValues::kRefuseButCutRetries;
    p.atomic_not_eight_bytes = BadRequest::kIgnore;
    p.inline_on_read = BadRequest::kIgnore;
    p.checks_pd_of_address_handle = false;
    p.key_style = KeyStyle::kSame;
    p.failed_unsignaled_bind_completes = false;
    p.zero_length_mr = true;
    // Linux, commit ed23a72778f3: HCAs of Mellanox send an event for completions that were added
    // before the request for one.
    p.cq_arm_tells_of_waiting = true;
    // libmlx5: mlx5_access_dm(), mlx5_create_srq(), mlx5_calc_sq_size().
    p.device_memory_granule = 4;
    p.device_memory_out_of_range_errno = EFAULT;
    p.srq_without_receives = true;
    p.inline_fills_block = true;
    p.rereg_keeps_keys = true;
    p.zero_based_regions = false;
    p.bind_checks_range = false;
    p.send_queue_rounding = Rounding::kPowerOfTwo;
    p.receive_queue_rounding = Rounding::kPowerOfTwo;
    p.srq_rounding = Rounding::kPowerOfTwoLessOne;
    p.cq_rounding = Rounding::kPowerOfTwoLessOne;
    return p;
}

constexpr Personality rxe() {
    Personality p = kSpec;
    p.name = p.key = "rxe";
    p.identity = {.firmware = "0.0.0",
                  .vendor_id = 0xFFFFFF,
                  .vendor_part_id = 0,
                  .hw_ver = 0,
                  .board_id = "",
                  .hca_type = ""};
    p.limits = rxe_limits();
    p.overrides = kRxeOverrides;
    p.opcode_overrides = kRxeOpcodes;
    p.send_queue_rounding = p.receive_queue_rounding = Rounding::kPowerOfTwoLessOne;
    p.srq_rounding = p.cq_rounding = Rounding::kPowerOfTwoLessOne;
    p.cause_as_vendor_err = false;
    p.reset_to_err_by_modify = false;
    p.resizes_queues = false;
    p.sqd_to_rts_while_draining = true;
    p.send_error_enters_sqe = false;
    p.cur_state_is_believed = true;
    p.drained_event_unasked = true;
    p.rts_starts_sends_of_sqd = false;
    p.query_reports_cur_state = false;
    p.unset_path_reads_global = true;
    p.av_in_sqd_implies_port = true;
    p.attr_values = AttrValues::kCut;
    p.post_send_before_rts = PostTooEarly::kRefuseButQueue;
    p.flushes_receives_posted_in_err = false;
    p.unknown_opcode = BadRequest::kComplete;
    p.atomic_not_eight_bytes = BadRequest::kRefuse;
    p.atomic_misaligned = BadRequest::kRefuse;
    p.inline_on_read = BadRequest::kComplete;
    p.initiator_depth_zero_completes = false;
    p.checks_message_length = false;
    p.checks_values_of_address_handle = false;
    p.well_known_qkey_rule = false;
    p.slot_freed_by_polled_completion = false;
    p.failed_completion_keeps_opcode = false;
    p.send_completion_has_length = true;
    p.connected_receive_has_grh_flag = true;
    p.cq_overrun_kills_cq = false;
    p.purges_completions = false;
    p.checks_extended_cq_masks = false;
    p.cq_may_ignore_overrun = false;
    p.imports_objects = false;
    p.thread_domains = false;
    p.no_room_in_batch_errno = ENOSPC;
    p.rnr_wait_uses_ack_timer = true;
    p.raises_queue_pair_events = false;
    p.srq_limit_fires_when_already_below = false;
    p.key_style = KeyStyle::kSameWithRemoteRights;
    p.rereg_mr = false;
    p.null_mr = false;
    p.zero_based_regions = false;
    p.dereg_of_bound_mr_errno = EINVAL;
    p.window_bounds_hold = false;
    p.shared_receives_by_their_own_pd = false;  // rxe_resp.c: copy_data(qp->pd, ...)
    p.type1_bind_by_work_request = true;
    p.type2_bind_updates_window = false;
    p.create_returns_rounded = false;
    p.checks_srq_attr_mask = false;
    p.srq_limit_at_creation = true;
    p.inline_bytes_per_sge = 16;
    p.reports_port_speed = false;
    p.multicast_loopback = false;
    p.blocks_own_multicast = false;
    p.reacts_to_congestion = false;
    p.packet_kind_in_sl = false;
    return p;
}
}  // namespace detail

inline constexpr Personality kConnectX6 = detail::connectx6();
inline constexpr Personality kRxe = detail::rxe();

inline constexpr std::array<const Personality*, 3> kPersonalities = {&kSpec, &kConnectX6, &kRxe};

namespace detail {
constexpr Personality without_ethernet(Personality p, std::string_view key) {
    p.key = key;
    p.limits = simverbs::without_ethernet(p.limits);
    return p;
}
}  // namespace detail

// The same devices where none of their ports is Ethernet: what they report of themselves is what
// works there.
inline constexpr std::array<Personality, 3> kWithoutEthernet = {
    detail::without_ethernet(kSpec, "spec, InfiniBand"),
    detail::without_ethernet(kConnectX6, "connectx6, InfiniBand"),
    detail::without_ethernet(kRxe, "rxe, InfiniBand")};

// Returns the variant for a device, by whether it has an Ethernet port.
constexpr const Personality& variant_of(const Personality& personality, bool has_ethernet) {
    for (const Personality& variant : kWithoutEthernet) {
        if (!has_ethernet && variant.name == personality.name) {
            return variant;
        }
    }
    return personality;
}

// By its key, as processes tell one another; nullptr for an unknown one.
constexpr const Personality* find_variant(std::string_view key) {
    for (const Personality& variant : kWithoutEthernet) {
        if (variant.key == key) {
            return &variant;
        }
    }
    for (const Personality* personality : kPersonalities) {
        if (personality->key == key) {
            return personality;
        }
    }
    return nullptr;
}

// By the name that a topology or SIMVERBS_PERSONALITY gives; nullptr for an unknown one.
constexpr const Personality* find_personality(std::string_view name) {
    for (const Personality* personality : kPersonalities) {
        if (personality->name == name) {
            return personality;
        }
    }
    return nullptr;
}

}  // namespace simverbs
