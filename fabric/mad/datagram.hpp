// A management datagram: 256 bytes as they are on the wire, with the fields that all classes have
// (IBA 13.4.2) and those of directed-route SMPs (14.2.1.2), RMPP (13.6.2) and the SA (15.2.1.1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fabric/mad/field.hpp"

namespace fabric::mad {

inline constexpr std::size_t kDatagramBytes = 256;

// IBA 13.4.4.
enum class Class : std::uint8_t {
    kSubnLid = 0x01,
    kSubnAdm = 0x03,
    kPerformance = 0x04,
    kBaseboard = 0x05,
    kDeviceManagement = 0x06,
    kCommunication = 0x07,
    kDeviceAdministration = 0x10,
    kBis = 0x12,
    kCongestion = 0x21,
    kVendorOuiFirst = 0x30,  // with an OUI and RMPP
    kVendorOuiLast = 0x4F,
    kSubnDirected = 0x81,
};

// IBA 13.4.5, 15.2.2.
enum class Method : std::uint8_t {
    kGet = 0x01,
    kSet = 0x02,
    kSend = 0x03,
    kTrap = 0x05,
    kReport = 0x06,
    kTrapRepress = 0x07,
    kGetTable = 0x12,
    kGetTraceTable = 0x13,
    kGetMulti = 0x14,
    kDelete = 0x15,
    kGetResp = 0x81,
    kReportResp = 0x86,
    kGetTableResp = 0x92,
    kGetMultiResp = 0x94,
    kDeleteResp = 0x95,
};
inline constexpr std::uint8_t kResponseBit = 0x80;

// IBA 13.4.7; the SA's own in the high byte (15.2.4).
enum class Status : std::uint16_t {
    kOk = 0,
    kBusy = 0x0001,
    kBadVersion = 0x0004,
    kBadMethod = 0x0008,
    kBadMethodOrAttribute = 0x000C,
    kBadValue = 0x001C,
    kSaNoResources = 0x0100,
    kSaInvalidRequest = 0x0200,
    kSaNoRecords = 0x0300,
    kSaTooManyRecords = 0x0400,
    kSaInvalidGid = 0x0500,
    kSaInsufficientComponents = 0x0600,
    kSaDenied = 0x0700,
};

namespace header {
inline constexpr Field kBaseVersion{0, 8};
inline constexpr Field kClass{8, 8};
inline constexpr Field kClassVersion{16, 8};
inline constexpr Field kMethod{24, 8};
inline constexpr Field kStatus{32, 16};
inline constexpr Field kClassSpecific{48, 16};
inline constexpr Field kTransactionId{64, 64};
inline constexpr Field kTransactionIdHigh{64, 32};  // the agent that asked
inline constexpr Field kAttributeId{128, 16};
inline constexpr Field kAttributeModifier{160, 32};
inline constexpr std::size_t kBytes = 24;
}  // namespace header

namespace smp {
inline constexpr Field kDirection{32, 1};  // directed route only: 1 on the way back
inline constexpr Field kStatus{33, 15};    // directed route only
inline constexpr Field kHopPointer{48, 8};
inline constexpr Field kHopCount{56, 8};
inline constexpr Field kMkey{192, 64};
inline constexpr Field kDrSlid{256, 16};
inline constexpr Field kDrDlid{272, 16};
inline constexpr std::size_t kDataOffset = 64;
inline constexpr std::size_t kDataBytes = 64;
inline constexpr std::size_t kInitialPath = 128;
inline constexpr std::size_t kReturnPath = 192;
inline constexpr std::uint8_t kMaxHops = 63;  // entry 0 of a path means nothing
}  // namespace smp

namespace rmpp {
inline constexpr Field kVersion{192, 8};
inline constexpr Field kType{200, 8};
inline constexpr Field kResponseTime{208, 5};
inline constexpr Field kLast{213, 1};
inline constexpr Field kFirst{214, 1};
inline constexpr Field kActive{215, 1};
inline constexpr Field kStatus{216, 8};
inline constexpr Field kSegmentNumber{224, 32};
inline constexpr Field kPayloadLength{256, 32};    // DATA
inline constexpr Field kNewWindowLast{256, 32};    // ACK
inline constexpr std::size_t kHeaderEnd = 36;      // bytes
inline constexpr std::size_t kSegmentBytes = 220;  // behind that header
enum Type : std::uint8_t { kData = 1, kAck = 2, kStop = 3, kAbort = 4 };
enum AbortStatus : std::uint8_t {
    kTotalTimeTooLong = 118,
    kBadType = 121,
    kNewWindowTooSmall = 122,
    kSegmentTooBig = 123,
    kIllegalStatus = 124,
    kUnsupportedVersion = 125,
    kTooManyRetries = 126,
    kUnspecified = 127,
};
}  // namespace rmpp

namespace sa {
inline constexpr Field kSmKey{288, 64};
inline constexpr Field kAttributeOffset{352, 16};  // of 8 bytes
inline constexpr Field kComponentMask{384, 64};
inline constexpr std::size_t kDataOffset = 56;
inline constexpr std::size_t kDataBytes = 200;
}  // namespace sa

namespace vendor {
inline constexpr Field kOui{296, 24};
inline constexpr std::size_t kDataOffset = 40;
inline constexpr std::uint32_t kOpenIbOui = 0x001405;
inline constexpr std::uint8_t kOpenIbPing = 0x32;
}  // namespace vendor

struct Datagram {
    alignas(8) std::array<std::uint8_t, kDatagramBytes> bytes{};

    [[nodiscard]] std::uint64_t get(Field field) const { return mad::get(bytes, field); }
    void set(Field field, std::uint64_t value) { mad::set(bytes, field, value); }

    [[nodiscard]] Class management_class() const { return static_cast<Class>(get(header::kClass)); }
    [[nodiscard]] Method method() const { return static_cast<Method>(get(header::kMethod)); }
    [[nodiscard]] std::uint16_t attribute() const {
        return static_cast<std::uint16_t>(get(header::kAttributeId));
    }
    [[nodiscard]] std::uint32_t modifier() const {
        return static_cast<std::uint32_t>(get(header::kAttributeModifier));
    }
    [[nodiscard]] bool is_directed() const { return management_class() == Class::kSubnDirected; }
    [[nodiscard]] bool is_smp() const {
        return is_directed() || management_class() == Class::kSubnLid;
    }

    [[nodiscard]] Bytes from(std::size_t offset) { return Bytes(bytes).subspan(offset); }
    [[nodiscard]] ConstBytes from(std::size_t offset) const {
        return ConstBytes(bytes).subspan(offset);
    }
    [[nodiscard]] Bytes smp_data() { return from(smp::kDataOffset).first(smp::kDataBytes); }
    [[nodiscard]] ConstBytes smp_data() const {
        return from(smp::kDataOffset).first(smp::kDataBytes);
    }
};

// As ib_response_mad() of Linux: it answers somebody's request.
constexpr bool is_response(ConstBytes datagram) {
    const auto method = static_cast<std::uint8_t>(get(datagram, header::kMethod));
    return (method & kResponseBit) != 0 ||
           method == static_cast<std::uint8_t>(Method::kTrapRepress);
}

// Classes whose datagrams have an RMPP header (IBA 13.6.1).
constexpr bool has_rmpp_header(Class management_class) {
    return management_class == Class::kSubnAdm ||
           management_class == Class::kDeviceAdministration || management_class == Class::kBis ||
           (management_class >= Class::kVendorOuiFirst &&
            management_class <= Class::kVendorOuiLast);
}

// Where the data of a class begins: what each segment of an RMPP message repeats is before it.
constexpr std::size_t data_offset(Class management_class) {
    if (management_class == Class::kSubnAdm) {
        return sa::kDataOffset;
    }
    if (management_class == Class::kDeviceAdministration || management_class == Class::kBis ||
        management_class == Class::kDeviceManagement) {
        return 64;
    }
    return has_rmpp_header(management_class) ? vendor::kDataOffset : header::kBytes;
}

}  // namespace fabric::mad
