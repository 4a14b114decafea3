// The attributes of subnet management (IBA 14.2.5) and of performance management (16.1.3, 16.1.4)
// as tables of fields; offsets count from the attribute's first byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fabric/mad/field.hpp"

namespace fabric::mad {

enum class Attribute : std::uint16_t {
    kClassPortInfo = 0x01,
    kNotice = 0x02,
    kInformInfo = 0x03,
    kNodeDescription = 0x10,
    kNodeInfo = 0x11,
    kSwitchInfo = 0x12,
    kGuidInfo = 0x14,
    kPortInfo = 0x15,
    kPkeyTable = 0x16,
    kSlToVlTable = 0x17,
    kVlArbitration = 0x18,
    kLinearForwardingTable = 0x19,
    kMulticastForwardingTable = 0x1B,
    kSmInfo = 0x20,
    kVendorDiag = 0x30,
    kLedInfo = 0x31,
};

// Attributes of class kPerformance.
enum class PerformanceAttribute : std::uint16_t {
    kClassPortInfo = 0x01,
    kPortCounters = 0x12,
    kPortRcvErrorDetails = 0x15,
    kPortXmitDiscardDetails = 0x16,
    kPortCountersExtended = 0x1D,
};

// NodeInfo:NodeType.
enum class NodeType : std::uint8_t { kChannelAdapter = 1, kSwitch = 2, kRouter = 3 };

namespace node_info {
inline constexpr Field kBaseVersion{0, 8};
inline constexpr Field kClassVersion{8, 8};
inline constexpr Field kNodeType{16, 8};
inline constexpr Field kPortCount{24, 8};
inline constexpr Field kSystemImageGuid{32, 64};
inline constexpr Field kNodeGuid{96, 64};
inline constexpr Field kPortGuid{160, 64};
inline constexpr Field kPartitionCap{224, 16};
inline constexpr Field kDeviceId{240, 16};
inline constexpr Field kRevision{256, 32};
inline constexpr Field kLocalPort{288, 8};
inline constexpr Field kVendorId{296, 24};
inline constexpr std::size_t kBytes = 40;
}  // namespace node_info

inline constexpr std::size_t kNodeDescriptionBytes = 64;

namespace switch_info {
inline constexpr Field kLinearTableCap{0, 16};
inline constexpr Field kRandomTableCap{16, 16};
inline constexpr Field kMulticastTableCap{32, 16};
inline constexpr Field kLinearTableTop{48, 16};
inline constexpr Field kDefaultPort{64, 8};
inline constexpr Field kDefaultMulticastPrimaryPort{72, 8};
inline constexpr Field kDefaultMulticastOtherPort{80, 8};
inline constexpr Field kLifetime{88, 5};
inline constexpr Field kPortStateChange{93, 1};
inline constexpr Field kOptimizedSlToVl{94, 2};
inline constexpr Field kLidsPerPort{96, 16};
inline constexpr Field kPartitionEnforcementCap{112, 16};
inline constexpr Field kInboundEnforcement{128, 1};
inline constexpr Field kOutboundEnforcement{129, 1};
inline constexpr Field kFilterRawInbound{130, 1};
inline constexpr Field kFilterRawOutbound{131, 1};
inline constexpr Field kEnhancedPort0{132, 1};
inline constexpr Field kMulticastTableTop{144, 16};
inline constexpr std::size_t kBytes = 20;
}  // namespace switch_info

namespace port_info {
inline constexpr Field kMkey{0, 64};
inline constexpr Field kGidPrefix{64, 64};
inline constexpr Field kLid{128, 16};
inline constexpr Field kSmLid{144, 16};
inline constexpr Field kCapabilityMask{160, 32};
inline constexpr Field kDiagCode{192, 16};
inline constexpr Field kMkeyLease{208, 16};
inline constexpr Field kLocalPort{224, 8};
inline constexpr Field kWidthEnabled{232, 8};
inline constexpr Field kWidthSupported{240, 8};
inline constexpr Field kWidthActive{248, 8};
inline constexpr Field kSpeedSupported{256, 4};
inline constexpr Field kState{260, 4};
inline constexpr Field kPhysicalState{264, 4};
inline constexpr Field kDownDefault{268, 4};
inline constexpr Field kMkeyProtection{272, 2};
inline constexpr Field kLmc{277, 3};
inline constexpr Field kSpeedActive{280, 4};
inline constexpr Field kSpeedEnabled{284, 4};
inline constexpr Field kNeighborMtu{288, 4};
inline constexpr Field kSmSl{292, 4};
inline constexpr Field kVlCap{296, 4};
inline constexpr Field kInitType{300, 4};
inline constexpr Field kVlHighLimit{304, 8};
inline constexpr Field kVlArbitrationHighCap{312, 8};
inline constexpr Field kVlArbitrationLowCap{320, 8};
inline constexpr Field kInitTypeReply{328, 4};
inline constexpr Field kMtuCap{332, 4};
inline constexpr Field kStallCountAndLifetime{336, 8};  // VLStallCount, HOQLife
inline constexpr Field kOperationalVls{344, 4};
inline constexpr Field kPartitionEnforcement{348, 4};  // in, out, raw filters in, out
inline constexpr Field kMkeyViolations{352, 16};
inline constexpr Field kPkeyViolations{368, 16};
inline constexpr Field kQkeyViolations{384, 16};
inline constexpr Field kGuidCap{400, 8};
inline constexpr Field kClientReregister{408, 1};
inline constexpr Field kSubnetTimeout{411, 5};
inline constexpr Field kResponseTime{419, 5};
inline constexpr Field kErrorThresholds{424, 8};  // LocalPhyErrors, OverrunErrors
inline constexpr Field kMaxCreditHint{432, 16};
inline constexpr Field kRoundTripLatency{456, 24};
inline constexpr Field kCapabilityMask2{480, 16};
inline constexpr Field kExtendedSpeedActive{496, 4};
inline constexpr Field kExtendedSpeedSupported{500, 4};
inline constexpr Field kExtendedSpeedEnabled{507, 5};
inline constexpr std::size_t kBytes = 64;

// CapabilityMask.
inline constexpr std::uint32_t kIsSm = 1U << 1;
inline constexpr std::uint32_t kIsTrapSupported = 1U << 3;
inline constexpr std::uint32_t kIsExtendedSpeedsSupported = 1U << 14;
inline constexpr std::uint32_t kIsCapabilityMask2Supported = 1U << 15;
// CapabilityMask2.
inline constexpr std::uint16_t kIsWidth2xSupported = 1U << 4;
inline constexpr std::uint16_t kIsHdrSupported = 1U << 5;
inline constexpr std::uint16_t kIsNdrSupported = 1U << 10;
}  // namespace port_info

namespace sm_info {
inline constexpr Field kGuid{0, 64};
inline constexpr Field kKey{64, 64};
inline constexpr Field kActivityCount{128, 32};
inline constexpr Field kPriority{160, 4};
inline constexpr Field kState{164, 4};
inline constexpr std::size_t kBytes = 24;

enum class State : std::uint8_t { kNotActive = 0, kDiscovering = 1, kStandby = 2, kMaster = 3 };
constexpr std::string_view to_string(State state) {
    switch (state) {
        case State::kNotActive:
            return "NOT_ACTIVE";
        case State::kDiscovering:
            return "DISCOVERING";
        case State::kStandby:
            return "STANDBY";
        case State::kMaster:
            return "MASTER";
    }
    return "?";
}
// AttributeModifier of a Set (IBA 14.4.1).
enum class Control : std::uint32_t {
    kHandover = 1,
    kAcknowledge = 2,
    kDisable = 3,
    kStandby = 4,
    kDiscover = 5,
};
}  // namespace sm_info

namespace guid_info {
inline constexpr Field kFirstGuid{0, 64};
inline constexpr std::size_t kGuidsPerBlock = 8;
}  // namespace guid_info

namespace tables {
inline constexpr Field kFirstPkey{0, 16};
inline constexpr std::size_t kPkeysPerBlock = 32;
inline constexpr std::size_t kRoutesPerBlock = 64;  // one byte each
inline constexpr Field kFirstPortMask{0, 16};
inline constexpr std::size_t kMasksPerBlock = 32;
inline constexpr std::uint8_t kNoRoute = 0xFF;
}  // namespace tables

namespace notice {
inline constexpr Field kIsGeneric{0, 1};
inline constexpr Field kType{1, 7};
inline constexpr Field kProducerType{8, 24};
inline constexpr Field kTrapNumber{32, 16};
inline constexpr Field kIssuerLid{48, 16};
inline constexpr Field kToggle{64, 1};
inline constexpr Field kCount{65, 15};
inline constexpr Field kLinkStateLid{80, 16};    // trap 128
inline constexpr std::size_t kGidOffset = 16;    // the same, in bytes
inline constexpr Field kLocalChangeLid{96, 16};  // trap 144
inline constexpr Field kLocalChangeFlags{120, 8};
inline constexpr Field kLocalChangeCapabilities{128, 32};
inline constexpr Field kLocalChangeBits{160, 16};
inline constexpr Field kBadMkeyLid{96, 16};  // trap 256
inline constexpr Field kBadMkeyDrSlid{112, 16};
inline constexpr Field kBadMkeyMethod{128, 8};
inline constexpr Field kBadMkeyAttribute{144, 16};
inline constexpr Field kBadMkeyModifier{160, 32};
inline constexpr Field kBadMkeyKey{192, 64};
inline constexpr Field kBadMkeyIsDirected{264, 1};
inline constexpr Field kBadMkeyHopCount{266, 6};
inline constexpr std::size_t kIssuerGidOffset = 64;  // in Reports of the SA
inline constexpr std::size_t kBytes = 80;
enum class Type : std::uint8_t { kFatal, kUrgent, kSecurity, kSubnet, kInformational };
}  // namespace notice

namespace class_port_info {
inline constexpr Field kBaseVersion{0, 8};
inline constexpr Field kClassVersion{8, 8};
inline constexpr Field kCapabilityMask{16, 16};
inline constexpr Field kCapabilityMask2{32, 27};
inline constexpr Field kResponseTime{59, 5};
inline constexpr Field kTrapLid{480, 16};
inline constexpr Field kTrapPkey{496, 16};
inline constexpr std::size_t kBytes = 72;
}  // namespace class_port_info

namespace port_counters {
inline constexpr Field kPortSelect{8, 8};
inline constexpr Field kCounterSelect{16, 16};
inline constexpr Field kCounterSelect2{144, 8};
inline constexpr std::uint8_t kAllPorts = 0xFF;
// ClassPortInfo:CapabilityMask of the class.
inline constexpr std::uint16_t kAllPortSelect = 1U << 8;
inline constexpr std::uint16_t kExtendedWidth = 1U << 9;
inline constexpr std::uint16_t kXmitWait = 1U << 12;
}  // namespace port_counters

}  // namespace fabric::mad
