// The words for the enumerators of simverbs/fault.h, in their order.
#pragma once

#include <array>
#include <string_view>

#include "simverbs/simverbs.h"

namespace scenarios {

// clang-format off
inline constexpr auto kActionWords = std::to_array<std::string_view>({
    "mark",
    "drop", "corrupt", "rewrite", "duplicate", "delay", "reorder", "hold", "land_late",
    "mark_congestion", "notify_congestion", "nak", "rnr_nak",
    "release",
    "link_down", "link_up", "link_flap", "link_rate", "pause",
    "port_error", "lid", "pkey", "sm_lid", "reregister",
    "switch_death", "sm_death", "host_kill", "host_restart", "process_stop", "process_kill",
    "device_fatal", "device_remove", "device_arrive", "qp_error", "ring", "srq_ring", "cq_overrun",
    "mr_invalidate",
    "completion", "execution", "syndrome",
    "call",
});
// clang-format on
static_assert(kActionWords.size() == SIMVERBS_FAULT_CALL);
constexpr simverbs_fault_action action_of(std::size_t word) {
    return static_cast<simverbs_fault_action>(word + 1);  // after NONE
}

inline constexpr auto kTriggerWords =
    std::to_array<std::string_view>({"time", "packet", "work_request", "call"});
inline constexpr auto kDirectionWords =
    std::to_array<std::string_view>({"either", "requests", "responses"});
inline constexpr auto kFieldWords = std::to_array<std::string_view>(
    {"opcode", "psn", "dest_qp", "pkey", "qkey", "syndrome", "msn", "rkey", "remote_address",
     "length", "immediate", "ack_request", "solicited"});
static_assert(kFieldWords.size() == SIMVERBS_HEADER_SOLICITED);
inline constexpr auto kNakWords = std::to_array<std::string_view>(
    {"psn_sequence", "invalid_request", "remote_access", "remote_operational"});

}  // namespace scenarios
