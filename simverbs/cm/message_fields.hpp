// The fields of the messages of communication management (IBA 12.6, 12.8, 12.11), as they lie in a
// datagram. Vendor ids are those of enhanced connection establishment (ECE) in Linux.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/mad/datagram.hpp"
#include "fabric/mad/field.hpp"

namespace simverbs::cm {

using fabric::mad::Field;

// The class of IBA release 1.2.
inline constexpr std::uint8_t kClassVersion = 2;

// Returns the field of `bits` bits that begins at bit `bit` of byte `byte` of a message.
constexpr Field field_at(std::size_t byte, unsigned bit, unsigned bits) {
    return {static_cast<std::uint16_t>((fabric::mad::header::kBytes + byte) * 8 + bit),
            static_cast<std::uint8_t>(bits)};
}
// Returns where byte `byte` of a message is in its datagram.
constexpr std::size_t byte_at(std::size_t byte) {
    return fabric::mad::header::kBytes + byte;
}

// In all messages except SIDR_REQ and SIDR_REP.
inline constexpr Field kLocalCommId = field_at(0, 0, 32);
// In all of these except the REQ.
inline constexpr Field kRemoteCommId = field_at(4, 0, 32);

// The fields of a path, whose order differs between REQ and LAP. GIDs are byte offsets.
struct PathFields {
    Field local_lid;
    Field remote_lid;
    std::size_t local_gid;
    std::size_t remote_gid;
    Field flow_label;
    Field packet_rate;
    Field traffic_class;
    Field hop_limit;
    Field sl;
    Field subnet_local;
    Field local_ack_timeout;
};

namespace req {
inline constexpr Field kVendorId = field_at(5, 0, 24);
inline constexpr Field kServiceId = field_at(8, 0, 64);
inline constexpr Field kLocalCaGuid = field_at(16, 0, 64);
inline constexpr Field kLocalQkey = field_at(28, 0, 32);
inline constexpr Field kLocalQpn = field_at(32, 0, 24);
inline constexpr Field kResponderResources = field_at(35, 0, 8);
inline constexpr Field kLocalEecn = field_at(36, 0, 24);
inline constexpr Field kInitiatorDepth = field_at(39, 0, 8);
inline constexpr Field kRemoteEecn = field_at(40, 0, 24);
inline constexpr Field kRemoteCmResponseTimeout = field_at(43, 0, 5);
inline constexpr Field kTransportServiceType = field_at(43, 5, 2);
inline constexpr Field kEndToEndFlowControl = field_at(43, 7, 1);
inline constexpr Field kStartingPsn = field_at(44, 0, 24);
inline constexpr Field kLocalCmResponseTimeout = field_at(47, 0, 5);
inline constexpr Field kRetryCount = field_at(47, 5, 3);
inline constexpr Field kPkey = field_at(48, 0, 16);
inline constexpr Field kPathMtu = field_at(50, 0, 4);
inline constexpr Field kRdcExists = field_at(50, 4, 1);
inline constexpr Field kRnrRetryCount = field_at(50, 5, 3);
inline constexpr Field kMaxCmRetries = field_at(51, 0, 4);
inline constexpr Field kSrq = field_at(51, 4, 1);
inline constexpr Field kExtendedTransportType = field_at(51, 5, 3);
// The path that begins at byte `byte`.
constexpr PathFields path_at(std::size_t byte) {
    return {.local_lid = field_at(byte, 0, 16),
            .remote_lid = field_at(byte + 2, 0, 16),
            .local_gid = byte_at(byte + 4),
            .remote_gid = byte_at(byte + 20),
            .flow_label = field_at(byte + 36, 0, 20),
            .packet_rate = field_at(byte + 39, 2, 6),
            .traffic_class = field_at(byte + 40, 0, 8),
            .hop_limit = field_at(byte + 41, 0, 8),
            .sl = field_at(byte + 42, 0, 4),
            .subnet_local = field_at(byte + 42, 4, 1),
            .local_ack_timeout = field_at(byte + 43, 0, 5)};
}
inline constexpr PathFields kPrimaryPath = path_at(52);
inline constexpr PathFields kAlternatePath = path_at(96);
inline constexpr Field kSapSupported = field_at(139, 5, 1);
inline constexpr std::size_t kPrivateData = byte_at(140);
}  // namespace req

namespace mra {
inline constexpr Field kMessageMraed = field_at(8, 0, 2);
inline constexpr Field kServiceTimeout = field_at(9, 0, 5);
inline constexpr std::size_t kPrivateData = byte_at(10);
}  // namespace mra

namespace rej {
inline constexpr Field kMessageRejected = field_at(8, 0, 2);
inline constexpr Field kInfoLength = field_at(9, 0, 7);
inline constexpr Field kReason = field_at(10, 0, 16);
inline constexpr std::size_t kInfo = byte_at(12);
inline constexpr std::size_t kPrivateData = byte_at(84);
}  // namespace rej

namespace rep {
inline constexpr Field kLocalQkey = field_at(8, 0, 32);
inline constexpr Field kLocalQpn = field_at(12, 0, 24);
inline constexpr Field kVendorIdHigh = field_at(15, 0, 8);
inline constexpr Field kLocalEecn = field_at(16, 0, 24);
inline constexpr Field kVendorIdMiddle = field_at(19, 0, 8);
inline constexpr Field kStartingPsn = field_at(20, 0, 24);
inline constexpr Field kVendorIdLow = field_at(23, 0, 8);
inline constexpr Field kResponderResources = field_at(24, 0, 8);
inline constexpr Field kInitiatorDepth = field_at(25, 0, 8);
inline constexpr Field kTargetAckDelay = field_at(26, 0, 5);
inline constexpr Field kFailoverAccepted = field_at(26, 5, 2);
inline constexpr Field kEndToEndFlowControl = field_at(26, 7, 1);
inline constexpr Field kRnrRetryCount = field_at(27, 0, 3);
inline constexpr Field kSrq = field_at(27, 3, 1);
inline constexpr Field kLocalCaGuid = field_at(28, 0, 64);
inline constexpr std::size_t kPrivateData = byte_at(36);
}  // namespace rep

namespace rtu {
inline constexpr std::size_t kPrivateData = byte_at(8);
}  // namespace rtu

namespace dreq {
inline constexpr Field kRemoteQpn = field_at(8, 0, 24);
inline constexpr std::size_t kPrivateData = byte_at(12);
}  // namespace dreq

namespace drep {
inline constexpr std::size_t kPrivateData = byte_at(8);
}  // namespace drep

namespace sidr_req {
inline constexpr Field kRequestId = field_at(0, 0, 32);
inline constexpr Field kPkey = field_at(4, 0, 16);
inline constexpr Field kServiceId = field_at(8, 0, 64);
inline constexpr std::size_t kPrivateData = byte_at(16);
}  // namespace sidr_req

namespace sidr_rep {
inline constexpr Field kRequestId = field_at(0, 0, 32);
inline constexpr Field kStatus = field_at(4, 0, 8);
inline constexpr Field kInfoLength = field_at(5, 0, 8);
inline constexpr Field kVendorIdHigh = field_at(6, 0, 16);
inline constexpr Field kQpn = field_at(8, 0, 24);
inline constexpr Field kVendorIdLow = field_at(11, 0, 8);
inline constexpr Field kServiceId = field_at(12, 0, 64);
inline constexpr Field kQkey = field_at(20, 0, 32);
inline constexpr std::size_t kInfo = byte_at(24);
inline constexpr std::size_t kPrivateData = byte_at(96);
}  // namespace sidr_rep

namespace lap {
inline constexpr Field kRemoteQpn = field_at(12, 0, 24);
inline constexpr Field kRemoteCmResponseTimeout = field_at(15, 0, 5);
inline constexpr PathFields kAlternatePath{.local_lid = field_at(20, 0, 16),
                                           .remote_lid = field_at(22, 0, 16),
                                           .local_gid = byte_at(24),
                                           .remote_gid = byte_at(40),
                                           .flow_label = field_at(56, 0, 20),
                                           .packet_rate = field_at(61, 2, 6),
                                           .traffic_class = field_at(59, 0, 8),
                                           .hop_limit = field_at(60, 0, 8),
                                           .sl = field_at(62, 0, 4),
                                           .subnet_local = field_at(62, 4, 1),
                                           .local_ack_timeout = field_at(63, 0, 5)};
inline constexpr std::size_t kPrivateData = byte_at(64);
}  // namespace lap

namespace apr {
inline constexpr Field kInfoLength = field_at(8, 0, 8);
inline constexpr Field kStatus = field_at(9, 0, 8);
inline constexpr std::size_t kInfo = byte_at(12);
inline constexpr std::size_t kPrivateData = byte_at(84);
}  // namespace apr

}  // namespace simverbs::cm
