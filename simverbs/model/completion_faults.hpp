// Why a completion is what it is: one row a cause, with everything that follows from it on both
// sides.
//
// Engines name a cause; the row says which NAK goes out, which status each side sees, what happens
// to each queue pair and which event is raised. What a row does not say holds for all: requests
// behind the failed one are flushed in order when the queue pair stops, and a queue pair on an SRQ
// that enters ERR raises QP_LAST_WQE_REACHED.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "simverbs/model/aeth.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/services.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs {

// The number is what personality `spec` reports as vendor_err: a completion names its cause.
enum class FaultCause : std::uint8_t {
    kSuccess = 0x00,
    kFlushed = 0x01,

    // The requester, before anything is sent
    kMessageTooLong = 0x10,
    kDatagramAboveMtu = 0x11,
    kAtomicNotEightBytes = 0x12,
    kAddressOfOtherPd = 0x13,
    kOpcodeNotForService = 0x14,
    kInitiatorDepthZero = 0x15,
    kMalformedSend = 0x16,
    kGatherKey = 0x17,
    kGatherRange = 0x18,
    kBindRefused = 0x19,
    kLocalInvalidateRefused = 0x1A,
    kLocalInvalidateOfType1 = 0x1B,

    // The requester, by what comes back
    kLandingKey = 0x20,
    kLandingRange = 0x21,
    kLandingRight = 0x22,
    kReadLengthMismatch = 0x23,
    kResponseMismatch = 0x24,

    // The requester, by what does not come back
    kPacketsLost = 0x30,
    kPeerNotReady = 0x31,
    kPeerGone = 0x32,
    kPkeyMismatch = 0x33,
    kSequenceRetriesUsedUp = 0x34,
    kRnrRetriesUsedUp = 0x35,

    // The responder of an acknowledged service, on the request
    kQpLacksRight = 0x40,
    kAtomicMisaligned = 0x41,
    kTooManyReads = 0x42,
    kPayloadNotMtu = 0x43,
    kOpcodeOutOfOrder = 0x44,
    kOpcodeReserved = 0x45,
    kRemoteKey = 0x46,
    kRemoteRange = 0x47,
    kRemoteRight = 0x48,
    kRemoteOtherPd = 0x49,
    kXrcSrqInvalid = 0x4A,

    // The responder of an acknowledged service, on its own receive
    kReceiveTooSmall = 0x50,
    kReceiveKey = 0x51,
    kReceiveRange = 0x52,
    kReceiveRight = 0x53,
    kMalformedReceive = 0x54,
    kImmediateWriteRefused = 0x55,
    kRemoteInvalidateRefused = 0x56,
    kRendezvousLeftToSoftware = 0x57,
    kRendezvousReadFailed = 0x58,
    kTagNotInList = 0x59,

    // The receiver of an unacknowledged service
    kUnackedReceiveBad = 0x60,
    kUnackedMalformedReceive = 0x61,
    kUnackedReceiveTooSmall = 0x62,
    kDatagramAboveSrqReceive = 0x63,
    kUnackedNoReceive = 0x64,
    kUnackedMessageCut = 0x65,
    kUnackedWriteRefused = 0x66,
    kUnackedInvalidateRefused = 0x67,
    kWrongQkey = 0x68,
    kUnackedPkeyMismatch = 0x69,
    kUnackedPeerNotReady = 0x6A,

    // The device
    kExecutionFault = 0x70,
    kUnknownSyndrome = 0x71,
    kDeviceFatal = 0x72,
    kCqOverrun = 0x73,
    kSendRingUnreadable = 0x74,
    kReceiveRingUnreadable = 0x75,
    kSrqRingUnreadable = 0x76,
    kInternalError = 0x77,
    kInjectedStatus = 0x7F,
};

enum class FaultKind : std::uint8_t {
    kProtocol,     // arises from what programs and the fabric do
    kDeviceFault,  // needs a device that fails; a scenario asks for it
    kInjection,    // reached only when a scenario names the status
};
inline constexpr auto kFaultKindNames =
    std::to_array<std::string_view>({"protocol", "device fault", "injection"});
constexpr std::string_view to_string(FaultKind kind) {
    return kFaultKindNames[static_cast<std::size_t>(kind)];
}

enum class Detector : std::uint8_t { kNobody, kRequester, kResponder, kReceiver, kTimer, kDevice };
inline constexpr auto kDetectorNames = std::to_array<std::string_view>(
    {"nobody", "requester", "responder", "receiver", "timer", "device"});
constexpr std::string_view to_string(Detector detector) {
    return kDetectorNames[static_cast<std::size_t>(detector)];
}

// The answer of the responder on the wire.
enum class WireAnswer : std::uint8_t { kNothing, kAck, kRnrNak, kNak0, kNak1, kNak2, kNak3, kNak4 };
inline constexpr auto kWireAnswerNames = std::to_array<std::string_view>(
    {"nothing", "ACK", "RNR NAK", "NAK 0 PSN sequence error", "NAK 1 invalid request",
     "NAK 2 remote access error", "NAK 3 remote operational error", "NAK 4 invalid RD request"});
constexpr std::string_view to_string(WireAnswer answer) {
    return kWireAnswerNames[static_cast<std::size_t>(answer)];
}
constexpr std::optional<NakCode> nak_code(WireAnswer answer) {
    if (answer < WireAnswer::kNak0) {
        return std::nullopt;
    }
    return static_cast<NakCode>(static_cast<unsigned>(answer) -
                                static_cast<unsigned>(WireAnswer::kNak0));
}

// One side of a fault. A state is never named: it follows from the trigger and the service.
struct FaultSide {
    std::optional<WcStatus> status;
    std::optional<QpTrigger> trigger;  // none: the queue pair keeps its state
    std::optional<AsyncEvent> event;
    std::uint32_t connectx6_vendor_err = 0;  // 0: not known
};

struct CompletionFault {
    FaultCause cause;
    std::string_view name;
    FaultKind kind;
    Detector detector;
    Services services;  // of the requester; the responder's is peer_of()
    WireAnswer wire;
    FaultSide requester;
    FaultSide responder;  // its status is that of the receive
    std::string_view description;
    std::string_view source;
};

namespace detail {
using enum WcStatus;

constexpr FaultSide send_fails(WcStatus status, std::uint32_t connectx6 = 0) {
    return {status, QpTrigger::kSendError, std::nullopt, connectx6};
}
constexpr FaultSide receive_fails(WcStatus status, std::uint32_t connectx6 = 0) {
    return {status, QpTrigger::kQpError, std::nullopt, connectx6};
}
// Nothing completes, the queue pair stops and says so.
constexpr FaultSide stops(AsyncEvent event) {
    return {std::nullopt, QpTrigger::kQpError, event, 0};
}
inline constexpr FaultSide kCompletes = {kSuccess, std::nullopt, std::nullopt, 0};
inline constexpr FaultSide kUntouched = {};
inline constexpr FaultSide kRefusesRequest = stops(AsyncEvent::kQpReqErr);
inline constexpr FaultSide kRefusesAccess = stops(AsyncEvent::kQpAccessErr);

inline constexpr Services kSenders = kAllServices.without(Service::kXrcTgt);
inline constexpr Services kTwoSides = Service::kRc | Service::kXrcIni;
inline constexpr Services kUcUd = Service::kUc | Service::kUd;
inline constexpr Services kUcUdRaw = kUcUd | Service::kRawPacket;
inline constexpr Services kBinders = Services(Service::kRc) | Service::kUc | Service::kXrcIni;

inline constexpr std::string_view kStatusList = "IBA 11.6.2";
inline constexpr std::string_view kRequesterRules = "IBA 9.9.2";
inline constexpr std::string_view kResponderRules = "IBA 9.9.3";
inline constexpr std::string_view kTimers = "IBA 9.7.6.1.3";
}  // namespace detail

// clang-format off
inline constexpr auto kCompletionFaults = [] {
    using namespace detail;  // NOLINT(google-build-using-namespace): a table wants short words
    using enum FaultCause;
    using W = WireAnswer;
    using D = Detector;
    constexpr FaultKind kP = FaultKind::kProtocol;
    constexpr FaultKind kF = FaultKind::kDeviceFault;
    using C = FaultCause;
    return std::to_array<CompletionFault>({
        // cause                name                          kind detector      services                  wire         requester                            responder                            description                                                                    source
        {C::kSuccess,           "success",                    kP,  D::kNobody,    kSenders,                 W::kAck,     kCompletes,                          kCompletes,                          "nothing went wrong (services without acknowledgement: no ACK)",               kStatusList},
        {kFlushed,              "flushed",                    kP,  D::kNobody,    kAllServices,             W::kNothing, {kWrFlushErr, {}, {}, 0xF5},         {kWrFlushErr, {}, {}, 0xF5},         "outstanding at, or posted in, ERR; on the send side also SQE",                "IBA 10.3.1"},

        {kMessageTooLong,       "message too long",           kP,  D::kRequester, kSenders,                 W::kNothing, send_fails(kLocLenErr),              kUntouched,                          "the message is longer than the port's max_msg_sz",                            kRequesterRules},
        {kDatagramAboveMtu,     "datagram above the MTU",     kP,  D::kRequester, Service::kUd,             W::kNothing, send_fails(kLocLenErr),              kUntouched,                          "a UD message does not fit into one packet of the port's active MTU",          kRequesterRules},
        {kAtomicNotEightBytes,  "atomic not 8 bytes",         kP,  D::kRequester, kTwoSides,                W::kNothing, send_fails(kLocLenErr),              kUntouched,                          "the SGEs of an atomic do not add up to 8 bytes",                              "IBA 10.8.4"},
        {kAddressOfOtherPd,     "address handle of another PD", kP, D::kRequester, Service::kUd,            W::kNothing, send_fails(kLocQpOpErr),             kUntouched,                          "the address handle belongs to another PD than the QP",                        "IBA 10.2.2"},
        {kOpcodeNotForService,  "opcode not for the service", kP,  D::kRequester, kSenders,                 W::kNothing, send_fails(kLocQpOpErr),             kUntouched,                          "the service has no such operation (READ on UC, say)",                         kStatusList},
        {kInitiatorDepthZero,   "initiator depth 0",          kP,  D::kRequester, kTwoSides,                W::kNothing, send_fails(kLocQpOpErr),             kUntouched,                          "READ or atomic on a QP with max_rd_atomic 0",                                 kStatusList},
        {kMalformedSend,        "malformed send",             kP,  D::kRequester, kSenders,                 W::kNothing, send_fails(kLocQpOpErr),             kUntouched,                          "the work request makes no sense to the device",                               kStatusList},
        {kGatherKey,            "gather: key",                kP,  D::kRequester, kSenders,                 W::kNothing, send_fails(kLocProtErr, 0x52),       kUntouched,                          "lkey of a send unknown, deregistered or of another PD",                       "IBA 10.6.3"},
        {kGatherRange,          "gather: range",              kP,  D::kRequester, kSenders,                 W::kNothing, send_fails(kLocProtErr, 0x53),       kUntouched,                          "an SGE of a send reaches outside its region, or memory behind it is gone",    "IBA 10.6.3"},
        {kBindRefused,          "bind refused",               kP,  D::kRequester, kBinders,                 W::kNothing, send_fails(kMwBindErr),              kUntouched,                          "window outside the region, region without MW_BIND, another PD",               "IBA 10.6.7"},
        {kLocalInvalidateRefused, "local invalidate refused", kP,  D::kRequester, kBinders,                 W::kNothing, send_fails(kMwBindErr),              kUntouched,                          "LOCAL_INV of a key that cannot be invalidated",                               "IBA 10.6.7"},
        {kLocalInvalidateOfType1, "local invalidate of a type 1 window", kP, D::kRequester, kBinders,     W::kNothing, send_fails(kLocQpOpErr),             kUntouched,                          "LOCAL_INV of the key of a type 1 window, which is unbound by a bind alone",   "IBA o10-37.2.26"},

        {kLandingKey,           "landing: key",               kP,  D::kRequester, kTwoSides,                W::kAck,     send_fails(kLocProtErr, 0x52),       kUntouched,                          "READ or atomic response: lkey unknown, deregistered or of another PD",        "IBA 10.6.3"},
        {kLandingRange,         "landing: range",             kP,  D::kRequester, kTwoSides,                W::kAck,     send_fails(kLocProtErr, 0x53),       kUntouched,                          "READ or atomic response: an SGE reaches outside its region",                  "IBA 10.6.3"},
        {kLandingRight,         "landing: right",             kP,  D::kRequester, kTwoSides,                W::kAck,     send_fails(kLocProtErr, 0x33),       kUntouched,                          "READ or atomic response: the region lacks LOCAL_WRITE",                       "IBA 10.6.3"},
        {kReadLengthMismatch,   "READ response of wrong length", kP, D::kRequester, kTwoSides,              W::kAck,     send_fails(kLocLenErr),              kUntouched,                          "READ response of wrong length, a path MTU that differs at the peer included", kRequesterRules},
        {kResponseMismatch,     "response does not fit",      kP,  D::kRequester, kTwoSides,                W::kAck,     send_fails(kBadRespErr),             kUntouched,                          "a response opcode that does not fit the request, or a reserved syndrome",     kRequesterRules},

        {kPacketsLost,          "packets lost",               kP,  D::kTimer,     kTwoSides,                W::kNothing, send_fails(kRetryExcErr, 0x81),      kUntouched,                          "requests or responses lost, retry_cnt used up",                               kTimers},
        {kPeerNotReady,         "peer not ready",             kP,  D::kTimer,     kTwoSides,                W::kNothing, send_fails(kRetryExcErr, 0x81),      kUntouched,                          "the peer's QP is in RESET, INIT or ERR: it is silent",                        kTimers},
        {kPeerGone,             "peer gone",                  kP,  D::kTimer,     kTwoSides,                W::kNothing, send_fails(kRetryExcErr, 0x81),      kUntouched,                          "no such QP or no such port at the destination",                               kTimers},
        {kPkeyMismatch,         "P_Key mismatch",             kP,  D::kTimer,     kTwoSides,                W::kNothing, send_fails(kRetryExcErr, 0x81),      kUntouched,                          "the peer drops and counts packets of another partition",                      "IBA 10.9.4"},
        {kSequenceRetriesUsedUp, "sequence NAKs used up",     kP,  D::kRequester, kTwoSides,                W::kNak0,    send_fails(kRetryExcErr, 0x81),      kUntouched,                          "PSN sequence error NAKs, retry_cnt used up",                                  "IBA 9.7.5.2.8"},
        {kRnrRetriesUsedUp,     "RNR NAKs used up",           kP,  D::kRequester, kTwoSides,                W::kRnrNak,  send_fails(kRnrRetryExcErr, 0x87),   kUntouched,                          "no receive posted at the peer, rnr_retry below 7 used up",                    "IBA 9.7.5.2.8"},

        {kQpLacksRight,         "QP lacks the right",         kP,  D::kResponder, kTwoSides,                W::kNak1,    send_fails(kRemInvReqErr, 0x8A),     kRefusesRequest,                     "the responder's QP does not allow WRITE, READ or atomics",                    kResponderRules},
        {kAtomicMisaligned,     "atomic misaligned",          kP,  D::kResponder, kTwoSides,                W::kNak1,    send_fails(kRemInvReqErr, 0x8A),     kRefusesAccess,                      "the remote address of an atomic is no multiple of 8",                         kResponderRules},
        {kTooManyReads,         "too many READs",             kP,  D::kResponder, kTwoSides,                W::kNak1,    send_fails(kRemInvReqErr, 0x8A),     kRefusesAccess,                      "more READs and atomics outstanding than max_dest_rd_atomic",                  kResponderRules},
        {kPayloadNotMtu,        "payload is not the path MTU", kP, D::kResponder, kTwoSides,                W::kNak1,    send_fails(kRemInvReqErr, 0x8A),     kRefusesRequest,                     "a first or middle packet is not full, or a last one is too long",             kResponderRules},
        {kOpcodeOutOfOrder,     "opcode out of order",        kP,  D::kResponder, kTwoSides,                W::kNak1,    send_fails(kRemInvReqErr, 0x8A),     kRefusesRequest,                     "a middle without a first, a first inside a message",                          kResponderRules},
        {kOpcodeReserved,       "opcode reserved",            kP,  D::kResponder, kTwoSides,                W::kNak1,    send_fails(kRemInvReqErr, 0x8A),     kRefusesRequest,                     "a request opcode that is reserved or not supported",                          kResponderRules},
        {kRemoteKey,            "rkey unknown",               kP,  D::kResponder, kTwoSides,                W::kNak2,    send_fails(kRemAccessErr, 0x88),     kRefusesAccess,                      "rkey unknown, invalidated or deregistered",                                   kResponderRules},
        {kRemoteRange,          "remote range",               kP,  D::kResponder, kTwoSides,                W::kNak2,    send_fails(kRemAccessErr, 0x88),     kRefusesAccess,                      "outside the region or window; earlier packets may have landed",               kResponderRules},
        {kRemoteRight,          "region lacks the right",     kP,  D::kResponder, kTwoSides,                W::kNak2,    send_fails(kRemAccessErr, 0x88),     kRefusesAccess,                      "the region or window does not allow the operation",                           kResponderRules},
        {kRemoteOtherPd,        "rkey of another PD",         kP,  D::kResponder, kTwoSides,                W::kNak2,    send_fails(kRemAccessErr, 0x88),     kRefusesAccess,                      "the region belongs to another PD, a type 2B window to another QP",            kResponderRules},
        {kXrcSrqInvalid,        "XRC SRQ invalid",            kP,  D::kResponder, Service::kXrcIni,         W::kNak4,    send_fails(kRemInvRdReqErr),         kRefusesAccess,                      "the SRQ number is unknown, no XRC SRQ, or of another XRC domain",             "IBA A14"},

        {kReceiveTooSmall,      "receive too small",          kP,  D::kResponder, kTwoSides,                W::kNak1,    send_fails(kRemInvReqErr, 0x8A),     receive_fails(kLocLenErr),           "the message does not fit into the receive",                                   kResponderRules},
        {kReceiveKey,           "receive: key",               kP,  D::kResponder, kTwoSides,                W::kNak3,    send_fails(kRemOpErr),               receive_fails(kLocProtErr, 0x52),    "lkey of a receive unknown, deregistered or of another PD",                    kResponderRules},
        {kReceiveRange,         "receive: range",             kP,  D::kResponder, kTwoSides,                W::kNak3,    send_fails(kRemOpErr),               receive_fails(kLocProtErr, 0x53),    "an SGE of a receive reaches outside its region",                              kResponderRules},
        {kReceiveRight,         "receive: right",             kP,  D::kResponder, kTwoSides,                W::kNak3,    send_fails(kRemOpErr),               receive_fails(kLocProtErr, 0x33),    "the region of a receive lacks LOCAL_WRITE",                                   kResponderRules},
        {kMalformedReceive,     "malformed receive",          kP,  D::kResponder, kTwoSides,                W::kNak3,    send_fails(kRemOpErr),               receive_fails(kLocQpOpErr),          "the receive makes no sense to the device",                                    kResponderRules},
        {kImmediateWriteRefused, "WRITE with immediate refused", kP, D::kResponder, kTwoSides,             W::kNak2,    send_fails(kRemAccessErr, 0x88),     receive_fails(kLocAccessErr),        "key, range or right fails at the packet that carries the immediate",          kResponderRules},
        {kRemoteInvalidateRefused, "remote invalidate refused", kP, D::kResponder, kTwoSides,              W::kNothing, send_fails(kRetryExcErr, 0x81),      receive_fails(kMwBindErr),           "SEND_WITH_INV of a key that cannot be: class J, neither ACK nor NAK",         kResponderRules},
        {kRendezvousLeftToSoftware, "rendezvous left to software", kP, D::kResponder, Service::kRc,        W::kAck,     kCompletes,                          {kTmRndvIncomplete, {}, {}, 0},      "the data does not fit into the tagged buffer, the request is too long, or the QP may not READ", "rdma-core mlx5"},
        {kRendezvousReadFailed, "rendezvous READ failed",     kP,  D::kResponder, Service::kRc,             W::kAck,     kCompletes,                          {kTmRndvIncomplete, QpTrigger::kSendError, {}, 0}, "the READ of a rendezvous failed at the QP that matched it, or was flushed", "rdma-core mlx5"},
        {kTagNotInList,         "tag not in the list",        kP,  D::kDevice,    Service::kRc,             W::kNothing, kUntouched,                          {kTmErr, {}, {}, 0},                 "an operation on a tag that a message has taken, or that the list has no room for", "ibv_post_srq_ops(3)"},

        {kUnackedReceiveBad,    "receive of UC, UD, raw: protection", kP, D::kReceiver, kUcUdRaw,                W::kNothing, kCompletes,                          receive_fails(kLocProtErr, 0x52),    "key, range or right of the receive",                                          kResponderRules},
        {kUnackedMalformedReceive, "receive of UC, UD, raw: malformed", kP, D::kReceiver, kUcUdRaw,            W::kNothing, kCompletes,                          receive_fails(kLocQpOpErr),          "the receive makes no sense to the device",                                    kResponderRules},
        {kUnackedReceiveTooSmall, "receive of UC, UD, raw: too small", kP, D::kReceiver, kUcUdRaw,              W::kNothing, kCompletes,                          kUntouched,                          "dropped; the receive stays for a smaller message (class D, E)",               kResponderRules},
        {kDatagramAboveSrqReceive, "datagram above the SRQ's receive", kP, D::kReceiver, Service::kUd,    W::kNothing, kCompletes,                          {kRemAbortErr, {}, {}, 0},           "UD on an SRQ: the receive is used up, the QP stays",                          kResponderRules},
        {kUnackedNoReceive,     "no receive on UC, UD, raw",  kP,  D::kReceiver,  kUcUd | Service::kRawPacket, W::kNothing, kCompletes,                       kUntouched,                          "dropped silently",                                                            kResponderRules},
        {kUnackedMessageCut,    "message cut on UC",          kP,  D::kReceiver,  Service::kUc,             W::kNothing, kCompletes,                          kUntouched,                          "a packet of the message is missing: the rest is dropped, the receive stays",  "IBA 9.8.2.2"},
        {kUnackedWriteRefused,  "WRITE on UC refused",        kP,  D::kReceiver,  Service::kUc,             W::kNothing, kCompletes,                          kUntouched,                          "rkey, range or right, or the QP lacks REMOTE_WRITE: dropped (class E)",       kResponderRules},
        {kUnackedInvalidateRefused, "remote invalidate refused on UC", kP, D::kReceiver, Service::kUc,    W::kNothing, kCompletes,                          receive_fails(kMwBindErr),           "SEND_WITH_INV of a key that cannot be",                                       kResponderRules},
        {kWrongQkey,            "wrong Q_Key",                kP,  D::kReceiver,  Service::kUd,             W::kNothing, kCompletes,                          kUntouched,                          "dropped and counted",                                                         "IBA 10.2.5"},
        {kUnackedPkeyMismatch,  "P_Key mismatch on UC, UD",   kP,  D::kReceiver,  kUcUd,                    W::kNothing, kCompletes,                          kUntouched,                          "dropped and counted",                                                         "IBA 10.9.4"},
        {kUnackedPeerNotReady,  "peer of UC, UD not ready",   kP,  D::kNobody,    kUcUd,                    W::kNothing, kCompletes,                          kUntouched,                          "no such QP, or it is in RESET, INIT or ERR: dropped",                         kResponderRules},

        {kExecutionFault,       "execution fault",            kF,  D::kDevice,    kSenders,                 W::kNothing, send_fails(kFatalErr),               kUntouched,                          "the device failed while executing this request",                              kStatusList},
        {kUnknownSyndrome,      "unknown syndrome",           kF,  D::kDevice,    kSenders,                 W::kNothing, send_fails(kGeneralErr),             kUntouched,                          "the device reported one completion with a syndrome its driver does not know", "rdma-core mlx5"},
        {kDeviceFatal,          "device fatal",               kF,  D::kDevice,    kAllServices,             W::kNothing, {{}, {}, AsyncEvent::kDeviceFatal, 0}, kUntouched,                        "no completions any more, verbs answer EIO; the peer sees it gone",            "IBA 11.6.3.4"},
        {kCqOverrun,            "CQ overrun",                 kP,  D::kDevice,    kAllServices,             W::kNothing, stops(AsyncEvent::kQpFatal),         kUntouched,                          "CQ_ERR once, the CQ is dead; each of its QPs goes to ERR with QP_FATAL",      "IBA 11.6.3.2"},
        {kSendRingUnreadable,   "send ring unreadable",       kF,  D::kDevice,    kSenders,                 W::kNothing, stops(AsyncEvent::kQpFatal),         kUntouched,                          "the device cannot read the send queue",                                       "IBA 11.6.3.2"},
        {kReceiveRingUnreadable, "receive ring unreadable",   kF,  D::kDevice,    kSenders,                 W::kNothing, kUntouched,                          stops(AsyncEvent::kQpFatal),         "the device cannot read the receive queue",                                    "IBA 11.6.3.2"},
        {kSrqRingUnreadable,    "SRQ ring unreadable",        kF,  D::kDevice,    kSenders,                 W::kNothing, kUntouched,                          stops(AsyncEvent::kQpFatal),         "SRQ_ERR once; each QP of the SRQ goes to ERR with QP_FATAL",                  "IBA 11.6.3.2"},
        {kInternalError,        "internal error",             kF,  D::kDevice,    kSenders,                 W::kNothing, stops(AsyncEvent::kQpFatal),         kUntouched,                          "the device finds an error of its own on this queue pair",                     "IBA 11.6.3.2"},
        {kInjectedStatus,       "status asked for by name",   FaultKind::kInjection, D::kDevice, kAllServices, W::kNothing, {{}, QpTrigger::kSendError, {}, 0}, {{}, QpTrigger::kQpError, {}, 0}, "the next work request of a queue completes with the status that was named", "simverbs.h"},
    });
}();
// clang-format on

// Statuses that no cause in this model leads to: a scenario may ask for one by name.
struct InjectionOnlyStatus {
    WcStatus status;
    std::string_view reason;
};
inline constexpr auto kInjectionOnly = std::to_array<InjectionOnlyStatus>({
    {WcStatus::kLocEecOpErr, "reliable datagram only"},
    {WcStatus::kLocRddViolErr, "reliable datagram only"},
    {WcStatus::kInvEecnErr, "reliable datagram only"},
    {WcStatus::kInvEecStateErr, "reliable datagram only"},
    {WcStatus::kRespTimeoutErr, "Linux reports it to senders of management datagrams only"},
});

constexpr const CompletionFault& fault_row(FaultCause cause) {
    for (const CompletionFault& row : kCompletionFaults) {
        if (row.cause == cause) {
            return row;
        }
    }
    return kCompletionFaults[0];  // unreachable: tests/model checks that each cause has a row
}

constexpr std::string_view to_string(FaultCause cause) {
    return fault_row(cause).name;
}

// The state a side is left in. `from` is the state the fault finds it in.
constexpr QpState state_after(const FaultSide& side, QpState from, Service service) {
    if (!side.trigger) {
        return from;
    }
    return next_state(from, *side.trigger, service).value_or(from);
}

}  // namespace simverbs
