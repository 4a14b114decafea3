// The actions of faults, a row each: the name, what an action is done to, which members of a
// struct simverbs_fault it reads, and which failures it can begin.
//
// simverbs_inject(), the keys and words of scenarios, explain() and the generated table in
// FAULT_ACTIONS.md read these rows. What an action does is written in simverbs/faults.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include <simverbs/fault.h>

#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs {

// Members of simverbs_fault.match, .target and .with. A member has several enumerators where its
// meaning depends on the action.
enum class FaultMember : std::uint64_t {
    kMatchLink = 1ULL << 0U,
    kMatchTransmitter = 1ULL << 1U,
    kMatchFrom = 1ULL << 2U,
    kMatchTo = 1ULL << 3U,
    kMatchOpcode = 1ULL << 4U,
    kMatchDirection = 1ULL << 5U,
    kMatchQp = 1ULL << 6U,
    kMatchQpNum = 1ULL << 7U,
    kMatchPsn = 1ULL << 8U,
    kMatchAttempt = 1ULL << 9U,
    kMatchNode = 1ULL << 10U,
    kMatchQueue = 1ULL << 11U,
    kMatchCall = 1ULL << 12U,

    kLink = 1ULL << 16U,
    kNode = 1ULL << 17U,
    kPort = 1ULL << 18U,
    kQp = 1ULL << 19U,
    kQpNum = 1ULL << 20U,
    kQueue = 1ULL << 21U,
    kCq = 1ULL << 22U,
    kSrq = 1ULL << 23U,
    kMr = 1ULL << 24U,
    kFault = 1ULL << 25U,

    kDuration = 1ULL << 32U,
    kInterval = 1ULL << 33U,
    kFlaps = 1ULL << 34U,
    kCopies = 1ULL << 35U,
    kHeaderValue = 1ULL << 36U,
    kNak = 1ULL << 37U,
    kRnrTimer = 1ULL << 38U,
    kLid = 1ULL << 39U,
    kPkey = 1ULL << 40U,
    kStatus = 1ULL << 41U,
    kErrno = 1ULL << 42U,
    kByteOffset = 1ULL << 43U,
    kTableIndex = 1ULL << 44U,
    kBits = 1ULL << 45U,
    kField = 1ULL << 46U,
    kWidth = 1ULL << 47U,
    kSpeed = 1ULL << 48U,
    kRejectReason = 1ULL << 49U,
    kFewer = 1ULL << 50U,
};
template <>
inline constexpr bool kIsSetMember<FaultMember> = true;
using FaultMembers = EnumSet<FaultMember>;

struct FaultMemberRow {
    FaultMember member;
    std::string_view name;  // in simverbs_fault
    std::string_view key;   // in scenarios; those of match stand under `when`
    std::uint64_t least = 0;
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    std::string_view range{};  // least to most, in words
};
// clang-format off
inline constexpr auto kFaultMembers = std::to_array<FaultMemberRow>({
    {FaultMember::kMatchLink,        "match.link",        "link"},
    {FaultMember::kMatchTransmitter, "match.transmitter", "transmitter"},
    {FaultMember::kMatchFrom,        "match.from",        "from"},
    {FaultMember::kMatchTo,          "match.to",          "to"},
    {FaultMember::kMatchOpcode,      "match.opcode",      "opcode"},
    {FaultMember::kMatchDirection,   "match.direction",   "direction"},
    {FaultMember::kMatchQpNum,       "match.qp_num",      "qp"},
    {FaultMember::kMatchQp,          "match.qp",          "qp"},
    {FaultMember::kMatchPsn,         "match.psn",         "psn"},
    {FaultMember::kMatchAttempt,     "match.attempt",     "attempt"},
    {FaultMember::kMatchNode,        "match.node",        "host"},
    {FaultMember::kMatchQueue,       "match.queue",       "queue"},
    {FaultMember::kMatchCall,        "match.call",        "call"},
    {FaultMember::kLink,             "target.link",       "link"},
    {FaultMember::kNode,             "target.node",       "node"},
    {FaultMember::kPort,             "target.port",       "port"},
    {FaultMember::kQpNum,            "target.qp_num",     "qp"},
    {FaultMember::kQp,               "target.qp",         "qp"},
    {FaultMember::kQueue,            "target.queue",      "queue"},
    {FaultMember::kCq,               "target.object",     "cq"},
    {FaultMember::kSrq,              "target.object",     "srq"},
    {FaultMember::kMr,               "target.object",     "memory"},
    {FaultMember::kFault,            "target.fault",      "fault"},
    {FaultMember::kDuration,         "with.duration_ps",  "duration"},
    {FaultMember::kInterval,         "with.interval_ps",  "interval"},
    {FaultMember::kFlaps,            "with.times",        "times"},
    {FaultMember::kCopies,           "with.times",        "times",
     0, 1U << 16U, "at most 65536"},
    {FaultMember::kFewer,            "with.times",        "fewer"},
    {FaultMember::kHeaderValue,      "with.value",        "value"},
    {FaultMember::kNak,              "with.value",        "nak",
     SIMVERBS_NAK_PSN_SEQUENCE, SIMVERBS_NAK_REMOTE_OPERATIONAL, "an enum simverbs_nak, 0 to 3"},
    {FaultMember::kRnrTimer,         "with.value",        "value",
     0, 31, "a timer, 0 to 31"},
    {FaultMember::kLid,              "with.value",        "value",
     0x1, 0xBFFF, "a unicast LID, 0x1 to 0xbfff"},
    {FaultMember::kPkey,             "with.value",        "value",
     0, 0xFFFF, "a P_Key of at most 16 bits"},
    {FaultMember::kStatus,           "with.value",        "status",
     1, kWcStatuses - 1, "a failure of enum ibv_wc_status, from 1 on"},
    {FaultMember::kErrno,            "with.value",        "errno",
     1, 4095, "an errno, 1 to 4095"},
    {FaultMember::kRejectReason,     "with.value",        "reason",
     1, 0xFFFF, "a reason of a REJ, 1 to 65535"},
    {FaultMember::kByteOffset,       "with.offset",       "offset"},
    {FaultMember::kTableIndex,       "with.offset",       "offset"},
    {FaultMember::kBits,             "with.bits",         "bits"},
    {FaultMember::kField,            "with.field",        "field"},
    {FaultMember::kWidth,            "with.width",        "rate"},
    {FaultMember::kSpeed,            "with.speed",        "rate"},
});
// clang-format on

// All enumerators of the member of that name.
constexpr FaultMembers members_named(std::string_view name) {
    FaultMembers members;
    for (const FaultMemberRow& row : kFaultMembers) {
        members = row.name == name ? members | row.member : members;
    }
    return members;
}

// The triggers of faults, and which members say what matches.
struct FaultTriggerRow {
    simverbs_fault_trigger trigger;
    std::string_view name;
    FaultMembers reads;
};
inline constexpr auto kFaultTriggers = std::to_array<FaultTriggerRow>({
    {SIMVERBS_ON_TIME, "time", {}},
    {SIMVERBS_ON_PACKET, "packet",
     FaultMember::kMatchLink | FaultMember::kMatchTransmitter | FaultMember::kMatchFrom |
         FaultMember::kMatchTo | FaultMember::kMatchOpcode | FaultMember::kMatchDirection |
         FaultMember::kMatchQp | FaultMember::kMatchQpNum | FaultMember::kMatchPsn |
         FaultMember::kMatchAttempt},
    {SIMVERBS_ON_WORK_REQUEST, "work_request",
     FaultMember::kMatchNode | FaultMember::kMatchQp | FaultMember::kMatchQpNum |
         FaultMember::kMatchQueue},
    {SIMVERBS_ON_CALL, "call", FaultMember::kMatchNode | FaultMember::kMatchCall},
});
// nullptr: no trigger has that number.
constexpr const FaultTriggerRow* find_fault_trigger(int number) {
    const auto* const found = std::ranges::find(kFaultTriggers, number, &FaultTriggerRow::trigger);
    return found == kFaultTriggers.end() ? nullptr : found;
}

// The subject of an action.
enum class FaultSubject : std::uint8_t {
    kNothing,
    kPacket,
    kFault,
    kLink,
    kLinkEnd,
    kPort,
    kSwitch,
    kSubnetManager,
    kHost,
    kPrograms,
    kDevice,
    kQueuePair,
    kWorkQueue,
    kSharedReceiveQueue,
    kCompletionQueue,
    kMemoryRegion,
    kWorkRequest,
    kSendRequest,
    kCall,
    kPoll,
    kCompletion,
    kCompletionEvent,
};

// Whom an action can affect: the queue pair of what it is done to, or every queue pair.
enum class FaultReach : std::uint8_t { kQueuePair, kFabric };

struct FaultSubjectRow {
    FaultSubject subject;
    std::string_view name;
    simverbs_fault_trigger usual_trigger;
    bool is_the_match;  // what the trigger matched is the subject: no other trigger, and no delay
    FaultMembers reads;
    FaultReach reach;
};
// clang-format off
inline constexpr auto kFaultSubjects = std::to_array<FaultSubjectRow>({
    {FaultSubject::kNothing,      "nothing",        SIMVERBS_ON_PACKET, false,
     {}, FaultReach::kQueuePair},
    {FaultSubject::kPacket,       "packet",         SIMVERBS_ON_PACKET, true,
     {}, FaultReach::kQueuePair},
    {FaultSubject::kFault,        "another fault",  SIMVERBS_ON_TIME, false,
     FaultMember::kFault, FaultReach::kQueuePair},
    // Without target.link, match.link names the link.
    {FaultSubject::kLink,         "link",           SIMVERBS_ON_TIME, false,
     FaultMember::kLink | FaultMember::kMatchLink, FaultReach::kFabric},
    {FaultSubject::kLinkEnd,      "end of a link",  SIMVERBS_ON_TIME, false,
     FaultMember::kLink | FaultMember::kMatchLink | FaultMember::kNode, FaultReach::kFabric},
    {FaultSubject::kPort,         "port",           SIMVERBS_ON_TIME, false,
     FaultMember::kNode | FaultMember::kPort, FaultReach::kFabric},
    {FaultSubject::kSwitch,       "switch",         SIMVERBS_ON_TIME, false,
     FaultMember::kNode, FaultReach::kFabric},
    {FaultSubject::kSubnetManager, "subnet manager", SIMVERBS_ON_TIME, false,
     {}, FaultReach::kFabric},
    {FaultSubject::kHost,         "host",           SIMVERBS_ON_TIME, false,
     FaultMember::kNode, FaultReach::kFabric},
    {FaultSubject::kPrograms,     "programs of a host", SIMVERBS_ON_TIME, false,
     FaultMember::kNode, FaultReach::kFabric},
    {FaultSubject::kDevice,       "device",         SIMVERBS_ON_TIME, false,
     FaultMember::kNode, FaultReach::kFabric},
    {FaultSubject::kQueuePair,    "queue pair",     SIMVERBS_ON_TIME, false,
     FaultMember::kNode | FaultMember::kQp | FaultMember::kQpNum, FaultReach::kQueuePair},
    {FaultSubject::kWorkQueue,    "work queue",     SIMVERBS_ON_TIME, false,
     FaultMember::kNode | FaultMember::kQp | FaultMember::kQpNum | FaultMember::kQueue,
     FaultReach::kQueuePair},
    {FaultSubject::kSharedReceiveQueue, "shared receive queue", SIMVERBS_ON_TIME, false,
     FaultMember::kNode | FaultMember::kSrq, FaultReach::kQueuePair},
    {FaultSubject::kCompletionQueue, "completion queue", SIMVERBS_ON_TIME, false,
     FaultMember::kNode | FaultMember::kCq, FaultReach::kQueuePair},
    {FaultSubject::kMemoryRegion, "memory region",  SIMVERBS_ON_TIME, false,
     FaultMember::kNode | FaultMember::kMr, FaultReach::kQueuePair},
    {FaultSubject::kWorkRequest,  "work request",   SIMVERBS_ON_WORK_REQUEST, true,
     {}, FaultReach::kQueuePair},
    {FaultSubject::kSendRequest,  "send request",   SIMVERBS_ON_WORK_REQUEST, true,
     {}, FaultReach::kQueuePair},
    {FaultSubject::kCall,         "call",           SIMVERBS_ON_CALL, true,
     {}, FaultReach::kQueuePair},
    {FaultSubject::kPoll,         "poll",           SIMVERBS_ON_CALL, true,
     {}, FaultReach::kQueuePair},
    {FaultSubject::kCompletion,   "completion",     SIMVERBS_ON_WORK_REQUEST, true,
     {}, FaultReach::kQueuePair},
    {FaultSubject::kCompletionEvent, "completion event", SIMVERBS_ON_CALL, true,
     {}, FaultReach::kQueuePair},
});
// clang-format on
static_assert([] {
    for (std::size_t i = 0; i < kFaultSubjects.size(); ++i) {
        if (kFaultSubjects[i].subject != static_cast<FaultSubject>(i)) {
            return false;
        }
    }
    return kFaultSubjects.back().subject == FaultSubject::kCompletionEvent;
}());
constexpr const FaultSubjectRow& row_of(FaultSubject subject) {
    return kFaultSubjects[static_cast<std::size_t>(subject)];
}

// How a work request or a queue pair fails, as far as it tells which faults can have begun it.
enum class FailureKind : std::uint8_t {
    kTimeout = 1U << 0U,   // the requester ran out of retries
    kNotReady = 1U << 1U,  // the requester ran out of RNR retries
    kError = 1U << 2U,     // a side, or its device, found something wrong
};
template <>
inline constexpr bool kIsSetMember<FailureKind> = true;
using FailureKinds = EnumSet<FailureKind>;

struct FaultActionRow {
    simverbs_fault_action action;
    std::string_view name;  // in scenarios and in the trace
    FaultSubject subject;
    FaultMembers needs;  // arguments that are not 0
    FaultMembers takes;  // further arguments
    FailureKinds begins;
};
// clang-format off
inline constexpr auto kFaultActions = [] {
    using M = FaultMember;
    using S = FaultSubject;
    using K = FailureKind;
    return std::to_array<FaultActionRow>({
        {SIMVERBS_FAULT_MARK,              "mark",              S::kNothing, {}, {}, K::kError},
        {SIMVERBS_FAULT_DROP,              "drop",              S::kPacket,  {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_CORRUPT,           "corrupt",           S::kPacket,
         {}, M::kByteOffset | M::kBits, K::kTimeout},
        {SIMVERBS_FAULT_REWRITE,           "rewrite",           S::kPacket,
         M::kField, M::kHeaderValue, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_DUPLICATE,         "duplicate",         S::kPacket,
         {}, M::kCopies | M::kDuration, K::kTimeout},
        {SIMVERBS_FAULT_DELAY,             "delay",             S::kPacket,
         M::kDuration, {}, K::kTimeout},
        {SIMVERBS_FAULT_REORDER,           "reorder",           S::kPacket,
         {}, M::kDuration, K::kTimeout},
        {SIMVERBS_FAULT_HOLD,              "hold",              S::kPacket,
         {}, M::kDuration, K::kTimeout},
        {SIMVERBS_FAULT_LAND_LATE,         "land_late",         S::kPacket,
         M::kDuration, {}, K::kTimeout},
        {SIMVERBS_FAULT_MARK_CONGESTION,   "mark_congestion",   S::kPacket,  {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_NOTIFY_CONGESTION, "notify_congestion", S::kPacket,  {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_NAK,               "nak",               S::kPacket,
         {}, M::kNak, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_RNR_NAK,           "rnr_nak",           S::kPacket,
         {}, M::kRnrTimer, K::kNotReady | K::kError},
        {SIMVERBS_FAULT_CM_REJECT,         "cm_reject",         S::kPacket,
         M::kRejectReason, {}, K::kTimeout},
        {SIMVERBS_FAULT_RELEASE,           "release",           S::kFault,   {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_LINK_DOWN,         "link_down",         S::kLink,
         {}, M::kDuration, K::kTimeout},
        {SIMVERBS_FAULT_LINK_UP,           "link_up",           S::kLink,    {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_LINK_FLAP,         "link_flap",         S::kLink,
         M::kDuration, M::kInterval | M::kFlaps, K::kTimeout},
        {SIMVERBS_FAULT_LINK_RATE,         "link_rate",         S::kLink,
         M::kWidth | M::kSpeed, {}, K::kTimeout},
        {SIMVERBS_FAULT_PAUSE,             "pause",             S::kLinkEnd,
         M::kDuration, {}, K::kTimeout},
        {SIMVERBS_FAULT_PORT_ERROR,        "port_error",        S::kPort,
         {}, M::kDuration, K::kTimeout},
        {SIMVERBS_FAULT_LID,               "lid",               S::kPort,
         M::kLid, {}, K::kTimeout},
        {SIMVERBS_FAULT_PKEY,              "pkey",              S::kPort,
         {}, M::kPkey | M::kTableIndex, K::kTimeout},
        {SIMVERBS_FAULT_SM_LID,            "sm_lid",            S::kPort,
         M::kLid, {}, K::kTimeout},
        {SIMVERBS_FAULT_REREGISTER,        "reregister",        S::kPort,    {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_SWITCH_DEATH,      "switch_death",      S::kSwitch,
         {}, M::kDuration, K::kTimeout},
        {SIMVERBS_FAULT_SM_DEATH,          "sm_death",          S::kSubnetManager,
         {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_HOST_KILL,         "host_kill",         S::kHost,
         {}, M::kDuration, K::kTimeout},
        {SIMVERBS_FAULT_HOST_RESTART,      "host_restart",      S::kHost,    {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_PROCESS_STOP,      "process_stop",      S::kPrograms,
         M::kDuration, {}, K::kNotReady},
        {SIMVERBS_FAULT_PROCESS_KILL,      "process_kill",      S::kPrograms, {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_DEVICE_FATAL,      "device_fatal",      S::kDevice,
         {}, {}, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_DEVICE_REMOVE,     "device_remove",     S::kDevice,
         {}, {}, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_DEVICE_ARRIVE,     "device_arrive",     S::kDevice,
         {}, {}, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_QP_ERROR,          "qp_error",          S::kQueuePair,
         {}, {}, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_RING,              "ring",              S::kWorkQueue,
         {}, {}, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_SRQ_RING,          "srq_ring",          S::kSharedReceiveQueue,
         {}, {}, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_CQ_OVERRUN,        "cq_overrun",        S::kCompletionQueue,
         {}, {}, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_MR_INVALIDATE,     "mr_invalidate",     S::kMemoryRegion,
         {}, {}, K::kTimeout | K::kError},
        {SIMVERBS_FAULT_COMPLETION,        "completion",        S::kWorkRequest,
         M::kStatus, {}, K::kError},
        {SIMVERBS_FAULT_EXECUTION,         "execution",         S::kSendRequest, {}, {}, K::kError},
        {SIMVERBS_FAULT_SYNDROME,          "syndrome",          S::kSendRequest, {}, {}, K::kError},
        {SIMVERBS_FAULT_CALL,              "call",              S::kCall,
         M::kErrno, {}, K::kError},
        {SIMVERBS_FAULT_NO_RECEIVE,        "no_receive",        S::kPacket,
         {}, {}, K::kNotReady},
        {SIMVERBS_FAULT_SYMBOL_ERROR,      "symbol_error",      S::kPacket,  {}, {}, K::kTimeout},
        {SIMVERBS_FAULT_SHORT_POLL,        "short_poll",        S::kPoll,    {}, M::kFewer, {}},
        {SIMVERBS_FAULT_COMPLETE_LATE,     "complete_late",     S::kCompletion,
         M::kDuration, {}, {}},
        {SIMVERBS_FAULT_EVENT_LATE,        "event_late",        S::kCompletionEvent,
         M::kDuration, {}, {}},
    });
}();
// clang-format on
// nullptr: no action has that number, or that name.
constexpr const FaultActionRow* find_fault_action(int number) {
    const auto* const found = std::ranges::find(kFaultActions, number, &FaultActionRow::action);
    return found == kFaultActions.end() ? nullptr : found;
}
constexpr const FaultActionRow* find_fault_action(std::string_view name) {
    const auto* const found = std::ranges::find(kFaultActions, name, &FaultActionRow::name);
    return found == kFaultActions.end() ? nullptr : found;
}
constexpr const FaultActionRow& row_of(simverbs_fault_action action) {
    return *find_fault_action(static_cast<int>(action));
}
constexpr std::string_view to_string(simverbs_fault_action action) {
    return row_of(action).name;
}

// All members that a fault with this action and trigger reads.
constexpr FaultMembers members_of(const FaultActionRow& action, const FaultTriggerRow& trigger) {
    return action.needs | action.takes | row_of(action.subject).reads | trigger.reads;
}

}  // namespace simverbs
