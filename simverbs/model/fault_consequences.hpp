// The consequences of faults that are done to no packet: how packets are lost by them, and which
// errors they lead to. explain() takes such a fault for the root of a failure by these rows only.
//
// A fault that is done to a packet needs none: the trace names the packet.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fabric/net/drop_reason.hpp"

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/fault_actions.hpp"
#include "simverbs/model/packet_fate.hpp"

namespace simverbs {

// Sets of reasons for which a frame was dropped, and a packet not taken: a bit each.
using DropReasons = std::uint32_t;
using PacketFates = std::uint32_t;

template <class... Reason>
constexpr std::uint32_t set_of(Reason... reasons) {
    return ((1U << static_cast<unsigned>(reasons)) | ...);
}

// How frames are lost where a link, a port or a device does not take them any further.
inline constexpr DropReasons kOutages = [] {
    using R = fabric::DropReason;
    return set_of(R::kPortNotActive, R::kPeerNotActive, R::kArrivedInactive, R::kLinkDown,
                  R::kNoRoute, R::kNoLane, R::kBackToSender, R::kNoConsumer,
                  R::kHeadOfQueueLifetime, R::kQueueFull);
}();

struct FaultConsequenceRow {
    simverbs_fault_action action;
    DropReasons drops = 0;
    PacketFates fates = 0;
    std::array<FaultCause, 7> errors{};  // kSuccess fills it up
};
// clang-format off
inline constexpr auto kFaultConsequences = [] {
    using R = fabric::DropReason;
    using F = PacketFate;
    using C = FaultCause;
    constexpr DropReasons kWaits = set_of(R::kHeadOfQueueLifetime, R::kQueueFull);
    constexpr PacketFates kGone = set_of(F::kNoQueuePair, F::kQueuePairNotReady);
    return std::to_array<FaultConsequenceRow>({
        {SIMVERBS_FAULT_MARK,          0,        0, {}},
        {SIMVERBS_FAULT_RELEASE,       0,        0, {}},
        {SIMVERBS_FAULT_LINK_DOWN,     kOutages, 0, {}},
        {SIMVERBS_FAULT_LINK_UP,       0,        0, {}},
        {SIMVERBS_FAULT_LINK_FLAP,     kOutages, 0, {}},
        {SIMVERBS_FAULT_LINK_RATE,     kWaits,   0, {}},
        {SIMVERBS_FAULT_PAUSE,         kWaits,   0, {}},
        {SIMVERBS_FAULT_PORT_ERROR,    kOutages, 0, {}},
        {SIMVERBS_FAULT_LID,           set_of(R::kNoRoute, R::kBackToSender, R::kNoConsumer),
         set_of(F::kNoQueuePair), {}},
        {SIMVERBS_FAULT_PKEY,          set_of(R::kPartitionIn, R::kPartitionOut),
         set_of(F::kPkeyMismatch), {}},
        {SIMVERBS_FAULT_SM_LID,        0,        0, {}},
        {SIMVERBS_FAULT_REREGISTER,    0,        0, {}},
        {SIMVERBS_FAULT_SWITCH_DEATH,  kOutages, 0, {}},
        {SIMVERBS_FAULT_SM_DEATH,      kOutages, 0, {}},
        {SIMVERBS_FAULT_HOST_KILL,     kOutages,
         kGone | set_of(F::kNoPower, F::kDeviceDead), {}},
        {SIMVERBS_FAULT_HOST_RESTART,  kOutages, kGone, {}},
        {SIMVERBS_FAULT_PROCESS_STOP,  0,        0, {}},
        {SIMVERBS_FAULT_PROCESS_KILL,  0,        kGone, {}},
        {SIMVERBS_FAULT_DEVICE_FATAL,  kOutages,
         set_of(F::kDeviceDead, F::kQueuePairNotReady), {C::kDeviceFatal}},
        {SIMVERBS_FAULT_DEVICE_REMOVE, kOutages, kGone | set_of(F::kDeviceDead), {C::kDeviceFatal}},
        {SIMVERBS_FAULT_DEVICE_ARRIVE, kOutages, kGone | set_of(F::kDeviceDead), {C::kDeviceFatal}},
        {SIMVERBS_FAULT_QP_ERROR,      0,        0, {C::kInternalError}},
        {SIMVERBS_FAULT_RING,          0,        0,
         {C::kSendRingUnreadable, C::kReceiveRingUnreadable}},
        {SIMVERBS_FAULT_SRQ_RING,      0,        0, {C::kSrqRingUnreadable}},
        {SIMVERBS_FAULT_CQ_OVERRUN,    0,        0, {C::kCqOverrun}},
        {SIMVERBS_FAULT_MR_INVALIDATE, 0,        0,
         {C::kGatherKey, C::kLandingKey, C::kRemoteKey, C::kReceiveKey, C::kImmediateWriteRefused,
          C::kUnackedReceiveBad, C::kUnackedWriteRefused}},
        {SIMVERBS_FAULT_COMPLETION,    0,        0, {C::kInjectedStatus}},
        {SIMVERBS_FAULT_EXECUTION,     0,        0, {C::kExecutionFault}},
        {SIMVERBS_FAULT_SYNDROME,      0,        0, {C::kUnknownSyndrome}},
        {SIMVERBS_FAULT_CALL,          0,        0, {}},
        {SIMVERBS_FAULT_SHORT_POLL,    0,        0, {}},
        {SIMVERBS_FAULT_COMPLETE_LATE, 0,        0, {C::kCqOverrun}},
        {SIMVERBS_FAULT_EVENT_LATE,    0,        0, {}},
    });
}();
// clang-format on

// nullptr: the action is done to packets.
constexpr const FaultConsequenceRow* find_consequences(simverbs_fault_action action) {
    const auto* const found =
        std::ranges::find(kFaultConsequences, action, &FaultConsequenceRow::action);
    return found == kFaultConsequences.end() ? nullptr : found;
}
static_assert(FaultCause{} == FaultCause::kSuccess);
static_assert(std::ranges::all_of(kFaultActions, [](const FaultActionRow& row) {
    return std::ranges::count(kFaultConsequences, row.action, &FaultConsequenceRow::action) ==
           (row.subject == FaultSubject::kPacket ? 0 : 1);
}));

// `reason`: of a dropped frame or a discarded packet, as the trace has it.
constexpr bool is_one_of(DropReasons reasons, std::string_view reason) {
    for (std::size_t i = 0; i < fabric::kDropReasonCount; ++i) {
        if ((reasons >> i & 1U) != 0 && to_string(static_cast<fabric::DropReason>(i)) == reason) {
            return true;
        }
    }
    return false;
}
constexpr bool leads_to_loss(const FaultConsequenceRow& row, std::string_view reason) {
    const auto* const fate = std::ranges::find(kPacketFateNames, reason);
    return is_one_of(row.drops, reason) ||
           (fate != kPacketFateNames.end() &&
            (row.fates >> static_cast<unsigned>(fate - kPacketFateNames.begin()) & 1U) != 0);
}
constexpr bool leads_to_error(const FaultConsequenceRow& row, FaultCause cause) {
    return cause != FaultCause::kSuccess &&
           std::ranges::find(row.errors, cause) != row.errors.end();
}

}  // namespace simverbs
