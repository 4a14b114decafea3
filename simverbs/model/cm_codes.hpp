// The numbers of communication management (IBA 12.6, 12.11): messages with the size of their
// private data, reasons of a REJ, statuses of a SIDR_REP and of an APR, with their names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace simverbs {

enum class CmMessage : std::uint8_t {
    kReq,
    kMra,
    kRej,
    kRep,
    kRtu,
    kDreq,
    kDrep,
    kSidrReq,
    kSidrRep,
    kLap,
    kApr,
};

struct CmMessageProperties {
    CmMessage message;
    std::string_view name;
    std::string_view operation;  // in traces and in faults, where packets have their opcodes
    std::uint16_t attribute_id;
    std::uint8_t private_bytes;
    std::uint8_t info_bytes;  // of additional information, where the message has some
};
inline constexpr auto kCmMessages = std::to_array<CmMessageProperties>({
    {CmMessage::kReq, "REQ", "CM_REQ", 0x0010, 92, 0},
    {CmMessage::kMra, "MRA", "CM_MRA", 0x0011, 222, 0},
    {CmMessage::kRej, "REJ", "CM_REJ", 0x0012, 148, 72},
    {CmMessage::kRep, "REP", "CM_REP", 0x0013, 196, 0},
    {CmMessage::kRtu, "RTU", "CM_RTU", 0x0014, 224, 0},
    {CmMessage::kDreq, "DREQ", "CM_DREQ", 0x0015, 220, 0},
    {CmMessage::kDrep, "DREP", "CM_DREP", 0x0016, 224, 0},
    {CmMessage::kSidrReq, "SIDR_REQ", "CM_SIDR_REQ", 0x0017, 216, 0},
    {CmMessage::kSidrRep, "SIDR_REP", "CM_SIDR_REP", 0x0018, 136, 72},
    {CmMessage::kLap, "LAP", "CM_LAP", 0x0019, 168, 0},
    {CmMessage::kApr, "APR", "CM_APR", 0x001A, 148, 72},
});
constexpr const CmMessageProperties& properties(CmMessage message) {
    return kCmMessages[static_cast<std::size_t>(message)];
}
constexpr std::string_view to_string(CmMessage message) {
    return properties(message).name;
}
static_assert(
    [] {
        for (std::size_t i = 0; i < kCmMessages.size(); ++i) {
            if (kCmMessages[i].message != static_cast<CmMessage>(i)) {
                return false;
            }
        }
        return true;
    }(),
    "rows are in the order of the enumerators");

static_assert(
    [] {
        for (const CmMessageProperties& row : kCmMessages) {
            if (!row.operation.starts_with("CM_") || row.operation.substr(3) != row.name) {
                return false;
            }
        }
        return true;
    }(),
    "operations are named after messages");

// Returns nothing if no message has this attribute id.
constexpr std::optional<CmMessage> find_cm_message(std::uint16_t attribute_id) {
    for (const CmMessageProperties& row : kCmMessages) {
        if (row.attribute_id == attribute_id) {
            return row.message;
        }
    }
    return std::nullopt;
}

// The message that a REJ or an MRA answers (IBA 12.6.5, 12.6.7): two bits.
enum class CmAnswered : std::uint8_t { kReq = 0, kRep = 1, kOther = 2 };

// IBA 12.6.7.2. A peer may send any 16 bits.
enum class RejectReason : std::uint16_t {
    kNoQp = 1,
    kNoEec = 2,
    kNoResources = 3,
    kTimeout = 4,
    kUnsupported = 5,
    kInvalidCommId = 6,
    kInvalidCommInstance = 7,
    kInvalidServiceId = 8,
    kInvalidTransportType = 9,
    kStaleConnection = 10,
    kRdcDoesNotExist = 11,
    kInvalidGid = 12,
    kInvalidLid = 13,
    kInvalidSl = 14,
    kInvalidTrafficClass = 15,
    kInvalidHopLimit = 16,
    kInvalidPacketRate = 17,
    kInvalidAlternateGid = 18,
    kInvalidAlternateLid = 19,
    kInvalidAlternateSl = 20,
    kInvalidAlternateTrafficClass = 21,
    kInvalidAlternateHopLimit = 22,
    kInvalidAlternatePacketRate = 23,
    kPortAndCmRedirect = 24,
    kPortRedirect = 25,
    kInvalidMtu = 26,
    kInsufficientResponderResources = 27,
    kConsumerDefined = 28,
    kInvalidRnrRetry = 29,
    kDuplicateLocalCommId = 30,
    kInvalidClassVersion = 31,
    kInvalidFlowLabel = 32,
    kInvalidAlternateFlowLabel = 33,
    kVendorOptionNotSupported = 35,
};

template <class Code>
struct CmCodeName {
    Code code;
    std::string_view name;
};
inline constexpr auto kRejectReasonNames = std::to_array<CmCodeName<RejectReason>>({
    {RejectReason::kNoQp, "no QP"},
    {RejectReason::kNoEec, "no EEC"},
    {RejectReason::kNoResources, "no resources"},
    {RejectReason::kTimeout, "timeout"},
    {RejectReason::kUnsupported, "unsupported request"},
    {RejectReason::kInvalidCommId, "invalid communication ID"},
    {RejectReason::kInvalidCommInstance, "invalid communication instance"},
    {RejectReason::kInvalidServiceId, "invalid service ID"},
    {RejectReason::kInvalidTransportType, "invalid transport service type"},
    {RejectReason::kStaleConnection, "stale connection"},
    {RejectReason::kRdcDoesNotExist, "RDC does not exist"},
    {RejectReason::kInvalidGid, "invalid GID"},
    {RejectReason::kInvalidLid, "invalid LID"},
    {RejectReason::kInvalidSl, "invalid SL"},
    {RejectReason::kInvalidTrafficClass, "invalid traffic class"},
    {RejectReason::kInvalidHopLimit, "invalid hop limit"},
    {RejectReason::kInvalidPacketRate, "invalid packet rate"},
    {RejectReason::kInvalidAlternateGid, "invalid alternate GID"},
    {RejectReason::kInvalidAlternateLid, "invalid alternate LID"},
    {RejectReason::kInvalidAlternateSl, "invalid alternate SL"},
    {RejectReason::kInvalidAlternateTrafficClass, "invalid alternate traffic class"},
    {RejectReason::kInvalidAlternateHopLimit, "invalid alternate hop limit"},
    {RejectReason::kInvalidAlternatePacketRate, "invalid alternate packet rate"},
    {RejectReason::kPortAndCmRedirect, "port and CM redirection"},
    {RejectReason::kPortRedirect, "port redirection"},
    {RejectReason::kInvalidMtu, "invalid path MTU"},
    {RejectReason::kInsufficientResponderResources, "insufficient responder resources"},
    {RejectReason::kConsumerDefined, "consumer reject"},
    {RejectReason::kInvalidRnrRetry, "RNR retry count reject"},
    {RejectReason::kDuplicateLocalCommId, "duplicate local communication ID"},
    {RejectReason::kInvalidClassVersion, "unsupported class version"},
    {RejectReason::kInvalidFlowLabel, "invalid flow label"},
    {RejectReason::kInvalidAlternateFlowLabel, "invalid alternate flow label"},
    {RejectReason::kVendorOptionNotSupported, "vendor option is not supported"},
});

// IBA 12.11.
enum class SidrStatus : std::uint8_t {
    kValid = 0,
    kServiceIdNotSupported = 1,
    kRejected = 2,
    kNoQp = 3,
    kRedirect = 4,
    kUnsupportedVersion = 5,
};
inline constexpr auto kSidrStatusNames = std::to_array<CmCodeName<SidrStatus>>({
    {SidrStatus::kValid, "QPN and Q_Key valid"},
    {SidrStatus::kServiceIdNotSupported, "service ID not supported"},
    {SidrStatus::kRejected, "rejected by service provider"},
    {SidrStatus::kNoQp, "no QP available"},
    {SidrStatus::kRedirect, "request redirected"},
    {SidrStatus::kUnsupportedVersion, "unsupported version"},
});

// IBA 12.8.2.
enum class AprStatus : std::uint8_t {
    kLoaded = 0,
    kInvalidCommId = 1,
    kUnsupported = 2,
    kRejected = 3,
    kRedirect = 4,
    kIsCurrent = 5,
    kInvalidQpn = 6,
    kInvalidLid = 7,
    kInvalidGid = 8,
    kInvalidFlowLabel = 9,
    kInvalidTrafficClass = 10,
    kInvalidHopLimit = 11,
    kInvalidPacketRate = 12,
    kInvalidSl = 13,
};
inline constexpr auto kAprStatusNames = std::to_array<CmCodeName<AprStatus>>({
    {AprStatus::kLoaded, "alternate path loaded"},
    {AprStatus::kInvalidCommId, "invalid communication ID"},
    {AprStatus::kUnsupported, "alternate paths not supported"},
    {AprStatus::kRejected, "rejected"},
    {AprStatus::kRedirect, "redirected"},
    {AprStatus::kIsCurrent, "duplicate of the current path"},
    {AprStatus::kInvalidQpn, "QPN or EECN does not match"},
    {AprStatus::kInvalidLid, "LID not recognized"},
    {AprStatus::kInvalidGid, "GID not recognized"},
    {AprStatus::kInvalidFlowLabel, "flow label rejected"},
    {AprStatus::kInvalidTrafficClass, "traffic class rejected"},
    {AprStatus::kInvalidHopLimit, "hop limit rejected"},
    {AprStatus::kInvalidPacketRate, "packet rate rejected"},
    {AprStatus::kInvalidSl, "SL rejected"},
});

// "reserved" for a code without a name, which a peer may send.
template <class Rows, class Code>
constexpr std::string_view cm_code_name(const Rows& rows, Code code) {
    for (const auto& row : rows) {
        if (row.code == code) {
            return row.name;
        }
    }
    return "reserved";
}
constexpr std::string_view to_string(RejectReason reason) {
    return cm_code_name(kRejectReasonNames, reason);
}
constexpr std::string_view to_string(SidrStatus status) {
    return cm_code_name(kSidrStatusNames, status);
}
constexpr std::string_view to_string(AprStatus status) {
    return cm_code_name(kAprStatusNames, status);
}

}  // namespace simverbs
