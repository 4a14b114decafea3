// The states of a connection in the communication manager (IBA 12.9.7), of a service ID resolution
// (12.11) and of the loading of an alternate path (12.8), as rows. A message without a row in a
// state is dropped in it; a command without one is refused with EINVAL.
// Peer-to-peer connections (12.9.6) and reliable datagrams have no rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/transition_table.hpp"

namespace simverbs {

// In the order of enum ib_cm_state of Linux. "Received" states of MRA wait for the REP or RTU: IBA
// calls them REP wait and RTU wait.
enum class CmState : std::uint8_t {
    kIdle,
    kListening,
    kReqSent,
    kReqReceived,
    kMraReqSent,
    kMraReqReceived,
    kRepSent,
    kRepReceived,
    kMraRepSent,
    kMraRepReceived,
    kEstablished,
    kDreqSent,
    kDreqReceived,
    kTimewait,
    kSidrReqSent,
    kSidrReqReceived,
};
inline constexpr auto kCmStateNames = std::to_array<std::string_view>(
    {"IDLE", "LISTEN", "REQ_SENT", "REQ_RCVD", "MRA_REQ_SENT", "MRA_REQ_RCVD", "REP_SENT",
     "REP_RCVD", "MRA_REP_SENT", "MRA_REP_RCVD", "ESTABLISHED", "DREQ_SENT", "DREQ_RCVD",
     "TIMEWAIT", "SIDR_REQ_SENT", "SIDR_REQ_RCVD"});
static_assert(kCmStateNames.size() == static_cast<std::size_t>(CmState::kSidrReqReceived) + 1);
constexpr std::string_view to_string(CmState state) {
    return kCmStateNames[static_cast<std::size_t>(state)];
}

enum class CmTrigger : std::uint8_t {
    // Commands of the user.
    kListen,
    kStopListening,
    kSendReq,
    kSendMra,
    kSendRej,
    kSendRep,
    kSendRtu,
    kSendDreq,
    kSendDrep,
    kSendSidrReq,
    kSendSidrRep,
    kEstablish,  // the queue pair has received a message: COMM_EST
    // Messages.
    kReq,
    kReqAgain,  // the same REQ as before
    kMraReq,
    kMraRep,
    kRep,
    kRtu,
    kRej,
    kRejStale,  // with reason 10
    kDreq,
    kDrep,
    kSidrReq,
    kSidrRep,
    // Times.
    kTimeout,  // after the last retry
    kTimewaitOver,
};
inline constexpr auto kCmTriggerNames = std::to_array<std::string_view>(
    {"listen",   "stop listening", "send REQ",   "send MRA",      "send REJ",      "send REP",
     "send RTU", "send DREQ",      "send DREP",  "send SIDR_REQ", "send SIDR_REP", "establish",
     "REQ",      "REQ again",      "MRA of REQ", "MRA of REP",    "REP",           "RTU",
     "REJ",      "REJ stale",      "DREQ",       "DREP",          "SIDR_REQ",      "SIDR_REP",
     "timeout",  "end of timewait"});
static_assert(kCmTriggerNames.size() == static_cast<std::size_t>(CmTrigger::kTimewaitOver) + 1);
constexpr std::string_view to_string(CmTrigger trigger) {
    return kCmTriggerNames[static_cast<std::size_t>(trigger)];
}
constexpr bool is_command(CmTrigger trigger) {
    return trigger <= CmTrigger::kEstablish;
}

// The roles that a connection identifier can have.
enum class CmSide : std::uint8_t {
    kActive = 1U << 0,   // sends the REQ
    kPassive = 1U << 1,  // listens
    kSidr = 1U << 2,     // resolves a service ID, or answers who does
};
template <>
inline constexpr bool kIsSetMember<CmSide> = true;
using CmSides = EnumSet<CmSide>;
inline constexpr auto kCmSides =
    std::to_array<CmSide>({CmSide::kActive, CmSide::kPassive, CmSide::kSidr});
constexpr std::string_view to_string(CmSide side) {
    return side == CmSide::kActive ? "active" : side == CmSide::kPassive ? "passive" : "sidr";
}

struct CmTransition {
    CmState from;
    CmTrigger trigger;
    CmState to;
    CmSides sides;
    std::string_view source;  // where the rule is written
};

// clang-format off
inline constexpr auto kCmTransitions = [] {
    using enum CmState;
    using enum CmTrigger;
    constexpr CmSides kActive = CmSide::kActive;
    constexpr CmSides kPassive = CmSide::kPassive;
    constexpr CmSides kBoth = kActive | kPassive;
    constexpr CmSides kSidr = CmSide::kSidr;
    return std::to_array<CmTransition>({
        // from             trigger         to                sides     source
        {kIdle,             kSendReq,       kReqSent,         kActive,  "IBA 12.9.7"},
        {kReqSent,          kMraReq,        kMraReqReceived,  kActive,  "IBA 12.9.7"},
        {kReqSent,          kRep,           kRepReceived,     kActive,  "IBA 12.9.7"},
        {kMraReqReceived,   kRep,           kRepReceived,     kActive,  "IBA 12.9.7"},
        {kRepReceived,      kSendMra,       kMraRepSent,      kActive,  "IBA 12.9.7"},
        {kRepReceived,      kSendRtu,       kEstablished,     kActive,  "IBA 12.9.7"},
        {kMraRepSent,       kSendRtu,       kEstablished,     kActive,  "IBA 12.9.7"},
        // The MRA or the RTU is sent again.
        {kMraRepSent,       kRep,           kMraRepSent,      kActive,  "Linux cm_dup_rep_handler"},
        {kEstablished,      kRep,           kEstablished,     kActive,  "Linux cm_dup_rep_handler"},

        {kReqSent,          kTimeout,       kIdle,            kActive,  "Linux cm_process_send_error"},
        {kMraReqReceived,   kTimeout,       kIdle,            kActive,  "Linux cm_process_send_error"},
        {kReqSent,          kRej,           kIdle,            kActive,  "IBA 12.9.7"},
        {kMraReqReceived,   kRej,           kIdle,            kActive,  "IBA 12.9.7"},
        {kRepReceived,      kRej,           kTimewait,        kActive,  "Linux cm_rej_handler"},
        {kMraRepSent,       kRej,           kTimewait,        kActive,  "Linux cm_rej_handler"},
        {kReqSent,          kRejStale,      kTimewait,        kActive,  "IBA 12.9.8.3.1"},
        {kMraReqReceived,   kRejStale,      kTimewait,        kActive,  "IBA 12.9.8.3.1"},
        {kRepReceived,      kRejStale,      kTimewait,        kActive,  "Linux cm_rej_handler"},
        {kMraRepSent,       kRejStale,      kTimewait,        kActive,  "Linux cm_rej_handler"},
        {kReqSent,          kSendRej,       kIdle,            kActive,  "Linux cm_send_rej_locked"},
        {kMraReqReceived,   kSendRej,       kIdle,            kActive,  "Linux cm_send_rej_locked"},
        {kRepReceived,      kSendRej,       kIdle,            kActive,  "Linux cm_send_rej_locked"},
        {kMraRepSent,       kSendRej,       kIdle,            kActive,  "Linux cm_send_rej_locked"},

        // A REQ makes a connection of its own, a SIDR_REQ a resolution; the listener goes on.
        {kIdle,             kListen,        kListening,       kPassive, "IBA 12.9.7"},
        {kListening,        kReq,           kListening,       kPassive, "Linux cm_req_handler"},
        {kListening,        kSidrReq,       kListening,       kPassive, "Linux cm_sidr_req_handler"},
        {kListening,        kStopListening, kIdle,            kPassive, "Linux cm_destroy_id"},
        {kIdle,             kReq,           kReqReceived,     kPassive, "IBA 12.9.7"},
        {kReqReceived,      kSendMra,       kMraReqSent,      kPassive, "IBA 12.9.7"},
        {kReqReceived,      kSendRep,       kRepSent,         kPassive, "IBA 12.9.7"},
        {kMraReqSent,       kSendRep,       kRepSent,         kPassive, "IBA 12.9.7"},
        {kRepSent,          kMraRep,        kMraRepReceived,  kPassive, "IBA 12.9.7"},
        {kRepSent,          kRtu,           kEstablished,     kPassive, "IBA 12.9.7"},
        {kMraRepReceived,   kRtu,           kEstablished,     kPassive, "IBA 12.9.7"},
        {kRepSent,          kEstablish,     kEstablished,     kPassive, "IBA 12.9.7"},
        {kMraRepReceived,   kEstablish,     kEstablished,     kPassive, "IBA 12.9.7"},
        // The MRA is sent again. In timewait the answer is a REJ (stale connection).
        {kMraReqSent,       kReqAgain,      kMraReqSent,      kPassive, "Linux cm_dup_req_handler"},
        {kTimewait,         kReqAgain,      kTimewait,        kPassive, "Linux cm_dup_req_handler"},

        {kRepSent,          kTimeout,       kIdle,            kPassive, "Linux cm_process_send_error"},
        {kMraRepReceived,   kTimeout,       kIdle,            kPassive, "Linux cm_process_send_error"},
        {kReqReceived,      kRej,           kIdle,            kPassive, "IBA 12.9.7"},
        {kMraReqSent,       kRej,           kIdle,            kPassive, "IBA 12.9.7"},
        {kRepSent,          kRej,           kIdle,            kPassive, "IBA 12.9.7"},
        {kMraRepReceived,   kRej,           kIdle,            kPassive, "IBA 12.9.7"},
        {kReqReceived,      kRejStale,      kTimewait,        kPassive, "Linux cm_rej_handler"},
        {kMraReqSent,       kRejStale,      kTimewait,        kPassive, "Linux cm_rej_handler"},
        {kRepSent,          kRejStale,      kTimewait,        kPassive, "IBA 12.9.8.3.1"},
        {kMraRepReceived,   kRejStale,      kTimewait,        kPassive, "IBA 12.9.8.3.1"},
        {kReqReceived,      kSendRej,       kIdle,            kPassive, "IBA 12.9.7"},
        {kMraReqSent,       kSendRej,       kIdle,            kPassive, "IBA 12.9.7"},
        {kRepSent,          kSendRej,       kTimewait,        kPassive, "Linux cm_send_rej_locked"},
        {kMraRepReceived,   kSendRej,       kTimewait,        kPassive, "Linux cm_send_rej_locked"},

        // Two DREQs that cross: each side answers the other's.
        {kEstablished,      kSendDreq,      kDreqSent,        kBoth,    "IBA 12.9.7"},
        {kEstablished,      kDreq,          kDreqReceived,    kBoth,    "IBA 12.9.7"},
        {kDreqSent,         kDreq,          kDreqReceived,    kBoth,    "IBA 12.9.7"},
        {kRepSent,          kDreq,          kDreqReceived,    kPassive, "Linux cm_dreq_handler"},
        {kMraRepReceived,   kDreq,          kDreqReceived,    kPassive, "Linux cm_dreq_handler"},
        {kDreqReceived,     kSendDrep,      kTimewait,        kBoth,    "IBA 12.9.7"},
        {kDreqSent,         kDrep,          kTimewait,        kBoth,    "IBA 12.9.7"},
        {kDreqReceived,     kDrep,          kTimewait,        kBoth,    "Linux cm_drep_handler"},
        {kDreqSent,         kTimeout,       kTimewait,        kBoth,    "IBA 12.9.7"},
        {kDreqSent,         kRej,           kTimewait,        kBoth,    "Linux cm_rej_handler"},
        {kDreqSent,         kRejStale,      kTimewait,        kBoth,    "Linux cm_rej_handler"},
        {kEstablished,      kRej,           kTimewait,        kBoth,    "IBA 12.9.7"},
        {kEstablished,      kRejStale,      kTimewait,        kBoth,    "IBA 12.9.8.3.1"},
        // The DREP is sent again.
        {kTimewait,         kDreq,          kTimewait,        kBoth,    "Linux cm_dreq_handler"},
        {kTimewait,         kTimewaitOver,  kIdle,            kBoth,    "IBA 12.9.7"},

        {kIdle,             kSendSidrReq,   kSidrReqSent,     kSidr,    "IBA 12.11"},
        {kSidrReqSent,      kSidrRep,       kIdle,            kSidr,    "IBA 12.11"},
        {kSidrReqSent,      kTimeout,       kIdle,            kSidr,    "IBA 12.11"},
        {kIdle,             kSidrReq,       kSidrReqReceived, kSidr,    "IBA 12.11"},
        {kSidrReqReceived,  kSendSidrRep,   kIdle,            kSidr,    "IBA 12.11"},
    });
}();
// clang-format on

consteval bool rows_are_unambiguous(std::span<const CmTransition> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = i + 1; j < rows.size(); ++j) {
            if (rows[i].from == rows[j].from && rows[i].trigger == rows[j].trigger) {
                return false;
            }
        }
    }
    return true;
}
static_assert(rows_are_unambiguous(kCmTransitions), "two rows claim the same trigger");

// Nothing where the trigger has no row.
constexpr std::optional<CmState> next_state(CmState from, CmTrigger trigger) {
    for (const CmTransition& row : kCmTransitions) {
        if (row.from == from && row.trigger == trigger) {
            return row.to;
        }
    }
    return std::nullopt;
}

// The loading of an alternate path, within ESTABLISHED. In the order of enum ib_cm_lap_state.
enum class LapState : std::uint8_t {
    kUninitialized,  // no LAP yet: the alternate path is that of the REQ, if any
    kIdle,
    kSent,
    kReceived,
    kMraSent,
    kMraReceived,
};
inline constexpr auto kLapStateNames = std::to_array<std::string_view>(
    {"LAP_UNINIT", "LAP_IDLE", "LAP_SENT", "LAP_RCVD", "MRA_LAP_SENT", "MRA_LAP_RCVD"});
static_assert(kLapStateNames.size() == static_cast<std::size_t>(LapState::kMraReceived) + 1);
constexpr std::string_view to_string(LapState state) {
    return kLapStateNames[static_cast<std::size_t>(state)];
}

enum class LapTrigger : std::uint8_t {
    kSendLap,
    kSendMra,
    kSendApr,
    kMigrated,  // the queue pair goes by the alternate path: PATH_MIG
    kLap,
    kMra,
    kApr,
    kTimeout,  // after the last retry
};
inline constexpr auto kLapTriggerNames = std::to_array<std::string_view>(
    {"send LAP", "send MRA", "send APR", "path migrated", "LAP", "MRA", "APR", "timeout"});
static_assert(kLapTriggerNames.size() == static_cast<std::size_t>(LapTrigger::kTimeout) + 1);
constexpr std::string_view to_string(LapTrigger trigger) {
    return kLapTriggerNames[static_cast<std::size_t>(trigger)];
}

using LapTransition = Transition<LapState, LapTrigger>;

// clang-format off
inline constexpr auto kLapTransitions = [] {
    using enum LapState;
    using enum LapTrigger;
    return std::to_array<LapTransition>({
        // from          trigger    to             source
        {kUninitialized, kSendLap,  kSent,         "IBA 12.8.1"},
        {kIdle,          kSendLap,  kSent,         "IBA 12.8.1"},
        {kSent,          kMra,      kMraReceived,  "IBA 12.6.5"},
        {kSent,          kApr,      kIdle,         "IBA 12.8.2"},
        {kMraReceived,   kApr,      kIdle,         "IBA 12.8.2"},
        {kSent,          kTimeout,  kIdle,         "IBA 12.8.1"},
        {kMraReceived,   kTimeout,  kIdle,         "IBA 12.8.1"},

        {kUninitialized, kLap,      kReceived,     "IBA 12.8.1"},
        {kIdle,          kLap,      kReceived,     "IBA 12.8.1"},
        {kReceived,      kSendMra,  kMraSent,      "IBA 12.6.5"},
        {kReceived,      kSendApr,  kIdle,         "IBA 12.8.2"},
        {kMraSent,       kSendApr,  kIdle,         "IBA 12.8.2"},
        // The MRA is sent again.
        {kMraSent,       kLap,      kMraSent,      "Linux cm_lap_handler"},

        {kUninitialized, kMigrated, kIdle,         "Linux cm_migrate"},
        {kIdle,          kMigrated, kIdle,         "Linux cm_migrate"},
    });
}();
// clang-format on

static_assert(rows_are_unambiguous(std::span<const LapTransition>(kLapTransitions)),
              "two rows claim the same trigger");

inline constexpr TransitionTable<LapState, LapTrigger, kLapStateNames.size(),
                                 kLapTriggerNames.size()>
    kLapTable{kLapTransitions};

// Nothing where the trigger has no row.
constexpr std::optional<LapState> next_state(LapState from, LapTrigger trigger) {
    return kLapTable.next(from, trigger);
}

}  // namespace simverbs
