// The queue pair state machine: the only place where a transition is written down.
//
// modify_qp(), the error paths of the engines, the Graphviz diagram, the table in the documentation
// and the exhaustive test all read kQpTransitions. To change the model, change a row.
// It says which moves exist and which attributes they take, never what an attribute's value may be.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/services.hpp"

namespace simverbs {

// Same values as enum ibv_qp_state.
enum class QpState : std::uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };
inline constexpr auto kQpStateNames =
    std::to_array<std::string_view>({"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"});
static_assert(kQpStateNames.size() == static_cast<std::size_t>(QpState::kErr) + 1);

constexpr std::string_view to_string(QpState state) {
    return kQpStateNames[static_cast<std::size_t>(state)];
}

// Same bits as enum ibv_qp_attr_mask.
enum class QpAttr : std::uint32_t {
    kState = 1U << 0,
    kCurState = 1U << 1,
    kEnSqdAsyncNotify = 1U << 2,
    kAccessFlags = 1U << 3,
    kPkeyIndex = 1U << 4,
    kPort = 1U << 5,
    kQkey = 1U << 6,
    kAv = 1U << 7,
    kPathMtu = 1U << 8,
    kTimeout = 1U << 9,
    kRetryCnt = 1U << 10,
    kRnrRetry = 1U << 11,
    kRqPsn = 1U << 12,
    kMaxRdAtomic = 1U << 13,
    kAltPath = 1U << 14,
    kMinRnrTimer = 1U << 15,
    kSqPsn = 1U << 16,
    kMaxDestRdAtomic = 1U << 17,
    kPathMigState = 1U << 18,
    kCap = 1U << 19,
    kDestQpn = 1U << 20,
    kRateLimit = 1U << 25,
};
template <>
inline constexpr bool kIsSetMember<QpAttr> = true;
using QpAttrs = EnumSet<QpAttr>;

struct QpAttrName {
    QpAttr attr;
    std::string_view name;  // as in rdma-core, without IBV_QP_
};
inline constexpr auto kQpAttrNames = std::to_array<QpAttrName>({
    {QpAttr::kState, "STATE"},
    {QpAttr::kCurState, "CUR_STATE"},
    {QpAttr::kEnSqdAsyncNotify, "EN_SQD_ASYNC_NOTIFY"},
    {QpAttr::kAccessFlags, "ACCESS_FLAGS"},
    {QpAttr::kPkeyIndex, "PKEY_INDEX"},
    {QpAttr::kPort, "PORT"},
    {QpAttr::kQkey, "QKEY"},
    {QpAttr::kAv, "AV"},
    {QpAttr::kPathMtu, "PATH_MTU"},
    {QpAttr::kTimeout, "TIMEOUT"},
    {QpAttr::kRetryCnt, "RETRY_CNT"},
    {QpAttr::kRnrRetry, "RNR_RETRY"},
    {QpAttr::kRqPsn, "RQ_PSN"},
    {QpAttr::kMaxRdAtomic, "MAX_QP_RD_ATOMIC"},
    {QpAttr::kAltPath, "ALT_PATH"},
    {QpAttr::kMinRnrTimer, "MIN_RNR_TIMER"},
    {QpAttr::kSqPsn, "SQ_PSN"},
    {QpAttr::kMaxDestRdAtomic, "MAX_DEST_RD_ATOMIC"},
    {QpAttr::kPathMigState, "PATH_MIG_STATE"},
    {QpAttr::kCap, "CAP"},
    {QpAttr::kDestQpn, "DEST_QPN"},
    {QpAttr::kRateLimit, "RATE_LIMIT"},
});
constexpr std::string_view to_string(QpAttr attr) {
    for (const QpAttrName& row : kQpAttrNames) {
        if (row.attr == attr) {
            return row.name;
        }
    }
    return "unknown";
}

// The cause of a transition.
enum class QpTrigger : std::uint8_t {
    kModify,     // the consumer called ibv_modify_qp
    kSendError,  // a work request of the send queue completed in error
    kQpError,    // any other error: a responder's, a receive's, the death of a CQ or SRQ, a device
                 // fault
    kDrained,    // in SQD: everything sent before is completed
};
inline constexpr auto kQpTriggerNames =
    std::to_array<std::string_view>({"modify", "send error", "queue pair error", "drained"});
static_assert(kQpTriggerNames.size() == static_cast<std::size_t>(QpTrigger::kDrained) + 1);
constexpr std::string_view to_string(QpTrigger trigger) {
    return kQpTriggerNames[static_cast<std::size_t>(trigger)];
}

// SQD is two states to an observer (ibv_qp_attr.sq_draining) and one in enum ibv_qp_state. Entering
// SQD begins the phase kDraining; the trigger kDrained, from SQD to SQD, ends it and raises
// SQ_DRAINED when EN_SQD_ASYNC_NOTIFY was asked for. Modifying SQD to SQD keeps the phase.
enum class SqdPhase : std::uint8_t { kDraining, kDrained };
constexpr std::string_view to_string(SqdPhase phase) {
    return phase == SqdPhase::kDraining ? "draining" : "drained";
}

// The rules of the two attributes that speak of states (IBA 11.2.5.2; Linux ib_modify_qp_is_ok):
// - STATE may accompany every row and is required by none. A modify without it asks for the row
//   from the current state to itself, which RTR and SQE do not have.
// - CUR_STATE is what the consumer believes. Where the row lists it and it differs from the state
//   the queue pair is in, the call fails with EINVAL and nothing changes.
// ALT_PATH and PATH_MIG_STATE belong to InfiniBand ports; on Ethernet, ALT_PATH is EINVAL.
struct QpTransition {
    QpState from;
    QpState to;
    QpTrigger trigger;
    Services services;
    QpAttrs required;
    QpAttrs optional;
    std::string_view source;  // where the rule is written
};

namespace detail {
using enum QpState;
using enum QpAttr;
using enum QpTrigger;
inline constexpr Services kAny = kAllServices;
inline constexpr Services kRcTgt = Service::kRc | Service::kXrcTgt;
inline constexpr Services kUcIni = Service::kUc | Service::kXrcIni;
inline constexpr Services kRcIni = Service::kRc | Service::kXrcIni;
// The services of which a send error stops only the send queue, and those of which it stops the
// queue pair.
inline constexpr Services kToSqe = Services(Service::kUc) | Service::kUd | Service::kRawPacket;
inline constexpr Services kToErr = kRcIni;

inline constexpr QpAttrs kPath = QpAttrs(kAv) | kPathMtu | kDestQpn | kRqPsn;
inline constexpr QpAttrs kRights = QpAttrs(kAccessFlags);
inline constexpr QpAttrs kApm = kAltPath | kPathMigState;
inline constexpr QpAttrs kRequesterTimes = QpAttrs(kTimeout) | kRetryCnt | kRnrRetry | kMaxRdAtomic;
inline constexpr std::string_view kTable = "IBA 11.2.5.2";
inline constexpr std::string_view kStates = "IBA 10.3.1";
inline constexpr std::string_view kLinux = "Linux qp_state_table";
}  // namespace detail

// clang-format off
inline constexpr auto kQpTransitions = [] {
    using namespace detail;  // NOLINT(google-build-using-namespace): a table wants short words
    return std::to_array<QpTransition>({
        // from   to     trigger  services              required                              optional                                             source
        {kReset, kInit,  kModify, kConnectedServices,   QpAttrs(kPkeyIndex)|kPort|kAccessFlags, {},                                                kTable},
        {kReset, kInit,  kModify, Service::kUd,         QpAttrs(kPkeyIndex)|kPort|kQkey,      {},                                                  kTable},
        {kReset, kInit,  kModify, Service::kRawPacket,  kPort,                                {},                                                  kLinux},

        {kInit,  kInit,  kModify, kConnectedServices,   {},                                   QpAttrs(kPkeyIndex)|kPort|kAccessFlags,              kTable},
        {kInit,  kInit,  kModify, Service::kUd,         {},                                   QpAttrs(kPkeyIndex)|kPort|kQkey,                     kTable},
        {kInit,  kInit,  kModify, Service::kRawPacket,  {},                                   {},                                                  kLinux},

        {kInit,  kRtr,   kModify, kRcTgt,               kPath|kMaxDestRdAtomic|kMinRnrTimer,  kRights|kPkeyIndex|kAltPath,                         kTable},
        {kInit,  kRtr,   kModify, kUcIni,               kPath,                                kRights|kPkeyIndex|kAltPath,                         kTable},
        {kInit,  kRtr,   kModify, Service::kUd,         {},                                   kPkeyIndex|kQkey,                                    kTable},
        {kInit,  kRtr,   kModify, Service::kRawPacket,  {},                                   {},                                                  kLinux},

        {kRtr,   kRts,   kModify, Service::kRc,         kRequesterTimes|kSqPsn,               kRights|kCurState|kApm|kMinRnrTimer,                 kTable},
        {kRtr,   kRts,   kModify, Service::kXrcIni,     kRequesterTimes|kSqPsn,               kRights|kCurState|kApm,                              kTable},
        {kRtr,   kRts,   kModify, Service::kXrcTgt,     kTimeout|kSqPsn,                      kRights|kCurState|kApm|kMinRnrTimer,                 kLinux},
        {kRtr,   kRts,   kModify, Service::kUc,         kSqPsn,                               kRights|kCurState|kApm,                              kTable},
        {kRtr,   kRts,   kModify, Service::kUd,         kSqPsn,                               kCurState|kQkey,                                     kTable},
        {kRtr,   kRts,   kModify, Service::kRawPacket,  {},                                   kRateLimit,                                          kLinux},

        {kRts,   kRts,   kModify, kRcTgt,               {},                                   kRights|kCurState|kApm|kMinRnrTimer,                 kTable},
        {kRts,   kRts,   kModify, kUcIni,               {},                                   kRights|kCurState|kApm,                              kTable},
        {kRts,   kRts,   kModify, Service::kUd,         {},                                   kCurState|kQkey,                                     kTable},
        {kRts,   kRts,   kModify, Service::kRawPacket,  {},                                   kRateLimit,                                          kLinux},

        {kRts,   kSqd,   kModify, kConnectedServices|Service::kUd, {},                        kEnSqdAsyncNotify,                                   kTable},
        {kRts,   kSqd,   kModify, Service::kRawPacket,  {},                                   {},                                                  kLinux},

        {kSqd,   kSqd,   kModify, Service::kRc,         {},                                   kRequesterTimes|kApm|kRights|kAv|kPort|kPkeyIndex|kMaxDestRdAtomic|kMinRnrTimer, kTable},
        {kSqd,   kSqd,   kModify, Service::kXrcIni,     {},                                   kRequesterTimes|kApm|kRights|kAv|kPort|kPkeyIndex,   kTable},
        {kSqd,   kSqd,   kModify, Service::kXrcTgt,     {},                                   kApm|kRights|kAv|kPort|kPkeyIndex|kTimeout|kMaxDestRdAtomic|kMinRnrTimer, kLinux},
        {kSqd,   kSqd,   kModify, Service::kUc,         {},                                   kApm|kRights|kAv|kPkeyIndex,                         kTable},
        {kSqd,   kSqd,   kModify, Service::kUd,         {},                                   kPkeyIndex|kQkey,                                    kTable},
        {kSqd,   kSqd,   kModify, Service::kRawPacket,  {},                                   {},                                                  kLinux},

        {kSqd,   kRts,   kModify, kRcTgt,               {},                                   kRights|kCurState|kApm|kMinRnrTimer,                 kTable},
        {kSqd,   kRts,   kModify, kUcIni,               {},                                   kRights|kCurState|kApm,                              kTable},
        {kSqd,   kRts,   kModify, Service::kUd,         {},                                   kCurState|kQkey,                                     kTable},
        {kSqd,   kRts,   kModify, Service::kRawPacket,  {},                                   {},                                                  kLinux},

        {kSqe,   kRts,   kModify, Service::kUc,         {},                                   kRights|kCurState,                                   kTable},
        {kSqe,   kRts,   kModify, Service::kUd,         {},                                   kCurState|kQkey,                                     kTable},
        {kSqe,   kRts,   kModify, Service::kRawPacket,  {},                                   {},                                                  kLinux},

        // Any state to RESET and to ERR. RESET to ERR is a personality's choice: Linux refuses it.
        {kReset, kReset, kModify, kAny,                 {},                                   {},                                                  kStates},
        {kInit,  kReset, kModify, kAny,                 {},                                   {},                                                  kStates},
        {kRtr,   kReset, kModify, kAny,                 {},                                   {},                                                  kStates},
        {kRts,   kReset, kModify, kAny,                 {},                                   {},                                                  kStates},
        {kSqd,   kReset, kModify, kAny,                 {},                                   {},                                                  kStates},
        {kSqe,   kReset, kModify, kToSqe,               {},                                   {},                                                  kStates},
        {kErr,   kReset, kModify, kAny,                 {},                                   {},                                                  kStates},
        {kReset, kErr,   kModify, kAny,                 {},                                   {},                                                  kStates},
        {kInit,  kErr,   kModify, kAny,                 {},                                   {},                                                  kStates},
        {kRtr,   kErr,   kModify, kAny,                 {},                                   {},                                                  kStates},
        {kRts,   kErr,   kModify, kAny,                 {},                                   {},                                                  kStates},
        {kSqd,   kErr,   kModify, kAny,                 {},                                   {},                                                  kStates},
        {kSqe,   kErr,   kModify, kToSqe,               {},                                   {},                                                  kStates},
        {kErr,   kErr,   kModify, kAny,                 {},                                   {},                                                  kStates},

        // Transitions that nobody asked for.
        {kRts,   kSqe,   kSendError, kToSqe,            {},                                   {},                                                  kStates},
        {kSqd,   kSqe,   kSendError, kToSqe,            {},                                   {},                                                  kStates},
        {kRts,   kErr,   kSendError, kToErr,            {},                                   {},                                                  kStates},
        {kSqd,   kErr,   kSendError, kToErr,            {},                                   {},                                                  kStates},
        {kInit,  kErr,   kQpError,   kAny,              {},                                   {},                                                  kStates},
        {kRtr,   kErr,   kQpError,   kAny,              {},                                   {},                                                  kStates},
        {kRts,   kErr,   kQpError,   kAny,              {},                                   {},                                                  kStates},
        {kSqd,   kErr,   kQpError,   kAny,              {},                                   {},                                                  kStates},
        {kSqe,   kErr,   kQpError,   kToSqe,            {},                                   {},                                                  kStates},
        {kSqd,   kSqd,   kDrained,   kAny,              {},                                   {},                                                  kStates},
    });
}();
// clang-format on

// At most one row answers a question: for every pair of rows with the same from, to and trigger the
// services are disjoint; what the consumer did not ask for leads from a state to one state only.
consteval bool rows_are_unambiguous(std::span<const QpTransition> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = i + 1; j < rows.size(); ++j) {
            const bool same_question =
                rows[i].from == rows[j].from && rows[i].trigger == rows[j].trigger &&
                (rows[i].to == rows[j].to || rows[i].trigger != QpTrigger::kModify);
            if (same_question && rows[i].services.intersects(rows[j].services)) {
                return false;
            }
        }
    }
    return true;
}
static_assert(rows_are_unambiguous(kQpTransitions), "two rows claim the same transition");

constexpr const QpTransition* find_transition(QpState from, QpState to, QpTrigger trigger,
                                              Service service) {
    for (const QpTransition& row : kQpTransitions) {
        if (row.from == from && row.to == to && row.trigger == trigger &&
            row.services.contains(service)) {
            return &row;
        }
    }
    return nullptr;
}

// Where an asynchronous trigger leads. Nothing where it changes no state: a queue pair in RESET has
// nothing that can fail, one in ERR cannot fail again.
constexpr std::optional<QpState> next_state(QpState from, QpTrigger trigger, Service service) {
    for (const QpTransition& row : kQpTransitions) {
        if (row.from == from && row.trigger == trigger && row.services.contains(service)) {
            return row.to;
        }
    }
    return std::nullopt;
}

// CAP, on a device that reports RESIZE_MAX_WR: resizing the queues in these steps. The Linux core
// lists CAP nowhere, so devices behind it never see it (personalities.hpp).
struct ResizeStep {
    QpState from;
    QpState to;
};
inline constexpr auto kResizeSteps = std::to_array<ResizeStep>({
    {QpState::kInit, QpState::kInit},
    {QpState::kInit, QpState::kRtr},
    {QpState::kRtr, QpState::kRts},
    {QpState::kRts, QpState::kRts},
    {QpState::kSqd, QpState::kSqd},
    {QpState::kSqd, QpState::kRts},
});

// The mistakes in the attributes given for a transition: both empty when nothing is.
struct QpAttrCheck {
    QpAttrs missing;
    QpAttrs superfluous;

    [[nodiscard]] constexpr bool ok() const { return missing.empty() && superfluous.empty(); }
};

// Attributes of the half that an XRC queue pair lacks are taken and ignored, so that a program may
// give RC's attributes to both ends (Linux uverbs modify_qp_mask).
constexpr QpAttrs ignored_attrs(Service service) {
    using enum QpAttr;
    switch (service) {
        case Service::kXrcIni:
            return kMaxDestRdAtomic | kMinRnrTimer;
        case Service::kXrcTgt:
            return QpAttrs(kMaxRdAtomic) | kRetryCnt | kRnrRetry;
        default:
            return {};
    }
}

// `resizes`: the device accepts CAP in kResizeSteps, from services that have queues of their own.
constexpr QpAttrCheck check_attrs(const QpTransition& row, Service service, QpAttrs given,
                                  bool resizes) {
    QpAttrs allowed = row.required | row.optional | QpAttr::kState;
    const ServiceProperties& of = properties(service);
    for (const ResizeStep& step : kResizeSteps) {
        if (resizes && (of.has_requester || of.has_receive_queue) && step.from == row.from &&
            step.to == row.to && row.trigger == QpTrigger::kModify) {
            allowed = allowed | QpAttr::kCap;
        }
    }
    return {.missing = row.required.without(given), .superfluous = given.without(allowed)};
}

}  // namespace simverbs
