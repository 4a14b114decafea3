// Completion statuses and asynchronous events: their numbers, names and whom an event concerns.
//
// Same values as enum ibv_wc_status and enum ibv_event_type. Why each arises stands in
// completion_faults.hpp (statuses) and in kAsyncEvents (events).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace simverbs {

enum class WcStatus : std::uint8_t {
    kSuccess,
    kLocLenErr,
    kLocQpOpErr,
    kLocEecOpErr,
    kLocProtErr,
    kWrFlushErr,
    kMwBindErr,
    kBadRespErr,
    kLocAccessErr,
    kRemInvReqErr,
    kRemAccessErr,
    kRemOpErr,
    kRetryExcErr,
    kRnrRetryExcErr,
    kLocRddViolErr,
    kRemInvRdReqErr,
    kRemAbortErr,
    kInvEecnErr,
    kInvEecStateErr,
    kFatalErr,
    kRespTimeoutErr,
    kGeneralErr,
    kTmErr,
    kTmRndvIncomplete,
};
// As rdma-core's enumerators, without IBV_WC_.
inline constexpr auto kWcStatusNames = std::to_array<std::string_view>({
    "SUCCESS",
    "LOC_LEN_ERR",
    "LOC_QP_OP_ERR",
    "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",
    "WR_FLUSH_ERR",
    "MW_BIND_ERR",
    "BAD_RESP_ERR",
    "LOC_ACCESS_ERR",
    "REM_INV_REQ_ERR",
    "REM_ACCESS_ERR",
    "REM_OP_ERR",
    "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR",
    "LOC_RDD_VIOL_ERR",
    "REM_INV_RD_REQ_ERR",
    "REM_ABORT_ERR",
    "INV_EECN_ERR",
    "INV_EEC_STATE_ERR",
    "FATAL_ERR",
    "RESP_TIMEOUT_ERR",
    "GENERAL_ERR",
    "TM_ERR",
    "TM_RNDV_INCOMPLETE",
});
inline constexpr std::size_t kWcStatuses = 24;
static_assert(kWcStatusNames.size() == kWcStatuses);
static_assert(static_cast<std::size_t>(WcStatus::kTmRndvIncomplete) + 1 == kWcStatuses);

constexpr std::string_view to_string(WcStatus status) {
    return kWcStatusNames[static_cast<std::size_t>(status)];
}

enum class AsyncEvent : std::uint8_t {
    kCqErr,
    kQpFatal,
    kQpReqErr,
    kQpAccessErr,
    kCommEst,
    kSqDrained,
    kPathMig,
    kPathMigErr,
    kDeviceFatal,
    kPortActive,
    kPortErr,
    kLidChange,
    kPkeyChange,
    kSmChange,
    kSrqErr,
    kSrqLimitReached,
    kQpLastWqeReached,
    kClientReregister,
    kGidChange,
    kWqFatal,
    kDeviceSpeedChange,  // rdma-core 62; delivered only to programs that ask for it
};
inline constexpr std::size_t kAsyncEventCount = 21;

// The member of ibv_async_event.element that tells whom it concerns.
enum class EventSubject : std::uint8_t { kCq, kQp, kSrq, kWq, kPort, kDevice };
inline constexpr auto kEventSubjectNames =
    std::to_array<std::string_view>({"CQ", "QP", "SRQ", "WQ", "port", "device"});
constexpr std::string_view to_string(EventSubject subject) {
    return kEventSubjectNames[static_cast<std::size_t>(subject)];
}

struct AsyncEventProperties {
    AsyncEvent event;
    std::string_view name;  // as rdma-core's enumerator, without IBV_EVENT_
    EventSubject subject;
    std::string_view cause;
    std::string_view source;
};

// Port and device events reach every context of the device; the others only the context that owns
// the object.
// clang-format off
inline constexpr auto kAsyncEvents = [] {
    using enum AsyncEvent;
    using S = EventSubject;
    return std::to_array<AsyncEventProperties>({
        {kCqErr,             "CQ_ERR",              S::kCq,     "the CQ overran",                                                                 "IBA 11.6.3.2"},
        {kQpFatal,           "QP_FATAL",            S::kQp,     "the QP's CQ or SRQ died, or a ring of the QP is unreadable",                     "IBA 11.6.3.2"},
        {kQpReqErr,          "QP_REQ_ERR",          S::kQp,     "responder: reserved or out-of-order opcode, the QP lacks the right; no receive completes in error", "IBA 11.6.3.2"},
        {kQpAccessErr,       "QP_ACCESS_ERR",       S::kQp,     "responder: key, range, right of the region, misaligned atomic, too many READs; no receive completes in error", "IBA 11.6.3.2"},
        {kCommEst,           "COMM_EST",            S::kQp,     "the first good packet arrived in RTR",                                           "IBA 11.6.3.1"},
        {kSqDrained,         "SQ_DRAINED",          S::kQp,     "SQD: drained, and EN_SQD_ASYNC_NOTIFY was asked for",                            "IBA 11.6.3.1"},
        {kPathMig,           "PATH_MIG",            S::kQp,     "migrated to the alternate path",                                                 "IBA 11.6.3.1"},
        {kPathMigErr,        "PATH_MIG_ERR",        S::kQp,     "the peer's new path is not the alternate path loaded here",                      "IBA 11.6.3.2"},
        {kDeviceFatal,       "DEVICE_FATAL",        S::kDevice, "device fault or hot removal",                                                    "IBA 11.6.3.4"},
        {kPortActive,        "PORT_ACTIVE",         S::kPort,   "the port became ACTIVE",                                                         "IBA 11.6.3.3"},
        {kPortErr,           "PORT_ERR",            S::kPort,   "the port left ACTIVE",                                                           "IBA 11.6.3.4"},
        {kLidChange,         "LID_CHANGE",          S::kPort,   "the subnet manager set another LID or LMC",                                      "ibv_get_async_event(3)"},
        {kPkeyChange,        "PKEY_CHANGE",         S::kPort,   "the subnet manager changed the P_Key table",                                     "ibv_get_async_event(3)"},
        {kSmChange,          "SM_CHANGE",           S::kPort,   "another master subnet manager",                                                  "ibv_get_async_event(3)"},
        {kSrqErr,            "SRQ_ERR",             S::kSrq,    "the ring of the SRQ is unreadable",                                              "IBA 11.6.3.2"},
        {kSrqLimitReached,   "SRQ_LIMIT_REACHED",   S::kSrq,    "receives fell below the armed limit",                                            "IBA 11.6.3.1"},
        {kQpLastWqeReached,  "QP_LAST_WQE_REACHED", S::kQp,     "a QP on an SRQ entered ERR: it takes no more receives",                          "IBA 11.6.3.1"},
        {kClientReregister,  "CLIENT_REREGISTER",   S::kPort,   "the subnet manager asks to register again",                                      "IBA 11.6.3.3"},
        {kGidChange,         "GID_CHANGE",          S::kPort,   "the GID table changed",                                                          "ibv_get_async_event(3)"},
        {kWqFatal,           "WQ_FATAL",            S::kWq,     "the CQ of a work queue died",                                                    "ibv_get_async_event(3)"},
        {kDeviceSpeedChange, "DEVICE_SPEED_CHANGE", S::kDevice, "rate or width of a port changed",                                                "rdma-core 62"},
    });
}();
// clang-format on
static_assert(kAsyncEvents.size() == kAsyncEventCount);

constexpr const AsyncEventProperties& properties(AsyncEvent event) {
    return kAsyncEvents[static_cast<std::size_t>(event)];
}
constexpr std::string_view to_string(AsyncEvent event) {
    return properties(event).name;
}

}  // namespace simverbs
