// The records of subnet administration (IBA 15.2.5): how long they are, where their components lie.
// A component's place in its table is its bit in the component mask; 0 bits: reserved, or one that
// no query selects by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/mad/attributes.hpp"

namespace fabric::mad {

enum class SaAttribute : std::uint16_t {
    kClassPortInfo = 0x01,
    kNotice = 0x02,
    kInformInfo = 0x03,
    kNode = 0x11,
    kPortInfo = 0x12,
    kSlToVlTable = 0x13,
    kSwitchInfo = 0x14,
    kLinearForwardingTable = 0x15,
    kMulticastForwardingTable = 0x17,
    kSmInfo = 0x18,
    kLink = 0x20,
    kGuidInfo = 0x30,
    kService = 0x31,
    kPkeyTable = 0x33,
    kPath = 0x35,
    kVlArbitration = 0x36,
    kMcMember = 0x38,
    kMultiPath = 0x3A,
    kInformInfoRecord = 0xF3,
};

struct Component {
    std::uint16_t offset;  // bits
    std::uint16_t bits;
};
constexpr Component component(Field field, std::uint16_t base) {
    return {static_cast<std::uint16_t>(base + field.offset), field.bits};
}

// Selectors of MTU, rate and lifetime (IBA 15.2.5.16).
enum class Selector : std::uint8_t { kGreater = 0, kLess = 1, kExactly = 2, kLargest = 3 };

inline constexpr Component kNone{0, 0};

namespace node_record {
inline constexpr std::size_t kBytes = 108;
inline constexpr std::size_t kInfo = 4;
inline constexpr std::size_t kDescription = 44;
inline constexpr auto kComponents = std::to_array<Component>({
    {0, 16},
    kNone,
    component(node_info::kBaseVersion, 32),
    component(node_info::kClassVersion, 32),
    component(node_info::kNodeType, 32),
    component(node_info::kPortCount, 32),
    component(node_info::kSystemImageGuid, 32),
    component(node_info::kNodeGuid, 32),
    component(node_info::kPortGuid, 32),
    component(node_info::kPartitionCap, 32),
    component(node_info::kDeviceId, 32),
    component(node_info::kRevision, 32),
    component(node_info::kLocalPort, 32),
    component(node_info::kVendorId, 32),
    {352, 512},
});
}  // namespace node_record

namespace port_info_record {
inline constexpr std::size_t kBytes = 68;
inline constexpr std::size_t kInfo = 4;
inline constexpr Field kLid{0, 16};
inline constexpr Field kPort{16, 8};
namespace p = port_info;
inline constexpr auto kComponents = std::to_array<Component>({
    {0, 16},
    {16, 8},
    kNone,
    component(p::kMkey, 32),
    component(p::kGidPrefix, 32),
    component(p::kLid, 32),
    component(p::kSmLid, 32),
    component(p::kCapabilityMask, 32),
    component(p::kDiagCode, 32),
    component(p::kMkeyLease, 32),
    component(p::kLocalPort, 32),
    component(p::kWidthEnabled, 32),
    component(p::kWidthSupported, 32),
    component(p::kWidthActive, 32),
    component(p::kSpeedSupported, 32),
    component(p::kState, 32),
    component(p::kPhysicalState, 32),
    component(p::kDownDefault, 32),
    component(p::kMkeyProtection, 32),
    kNone,
    component(p::kLmc, 32),
    component(p::kSpeedActive, 32),
    component(p::kSpeedEnabled, 32),
    component(p::kNeighborMtu, 32),
    component(p::kSmSl, 32),
    component(p::kVlCap, 32),
    component(p::kInitType, 32),
    component(p::kVlHighLimit, 32),
    component(p::kVlArbitrationHighCap, 32),
    component(p::kVlArbitrationLowCap, 32),
    component(p::kInitTypeReply, 32),
    component(p::kMtuCap, 32),
    kNone,
    kNone,
    component(p::kOperationalVls, 32),
    kNone,
    kNone,
    kNone,
    kNone,
    component(p::kMkeyViolations, 32),
    component(p::kPkeyViolations, 32),
    component(p::kQkeyViolations, 32),
    component(p::kGuidCap, 32),
    component(p::kClientReregister, 32),
    kNone,
    component(p::kSubnetTimeout, 32),
    kNone,
    component(p::kResponseTime, 32),
});
}  // namespace port_info_record

namespace switch_info_record {
inline constexpr std::size_t kBytes = 24;
inline constexpr auto kComponents = std::to_array<Component>({{0, 16}});
}  // namespace switch_info_record

// LID, block number, 64 bytes at 8: forwarding tables.
namespace table_record {
inline constexpr std::size_t kBytes = 72;
inline constexpr std::size_t kData = 8;
inline constexpr Field kLid{0, 16};
inline constexpr Field kBlock{16, 16};
inline constexpr Field kPosition{16, 4};    // MulticastForwardingTableRecord
inline constexpr Field kGroupBlock{23, 9};  // the same
inline constexpr Field kPkeyPort{32, 8};    // P_KeyTableRecord
inline constexpr Field kGuidBlock{16, 8};   // GUIDInfoRecord
inline constexpr Field kArbitrationPort{16, 8};
inline constexpr Field kArbitrationBlock{24, 8};
inline constexpr auto kLinear = std::to_array<Component>({{0, 16}, {16, 16}});
inline constexpr auto kMulticast = std::to_array<Component>({{0, 16}, {16, 4}, kNone, {23, 9}});
inline constexpr auto kPkeys = std::to_array<Component>({{0, 16}, {16, 16}, {32, 8}});
inline constexpr auto kGuids = std::to_array<Component>({{0, 16}, {16, 8}});
inline constexpr auto kArbitration = std::to_array<Component>({{0, 16}, {16, 8}, {24, 8}});
}  // namespace table_record

namespace sl_to_vl_record {
inline constexpr std::size_t kBytes = 16;
inline constexpr std::size_t kData = 8;
inline constexpr Field kInPort{16, 8};
inline constexpr Field kOutPort{24, 8};
inline constexpr auto kComponents = std::to_array<Component>({{0, 16}, {16, 8}, {24, 8}});
}  // namespace sl_to_vl_record

namespace sm_info_record {
inline constexpr std::size_t kBytes = 32;
inline constexpr std::size_t kInfo = 4;
inline constexpr auto kComponents =
    std::to_array<Component>({{0, 16}, kNone, {32, 64}, {96, 64}, {160, 32}, {192, 4}, {196, 4}});
}  // namespace sm_info_record

namespace link_record {
inline constexpr std::size_t kBytes = 8;
inline constexpr Field kFromLid{0, 16};
inline constexpr Field kFromPort{16, 8};
inline constexpr Field kToPort{24, 8};
inline constexpr Field kToLid{32, 16};
inline constexpr auto kComponents = std::to_array<Component>({{0, 16}, {16, 8}, {24, 8}, {32, 16}});
}  // namespace link_record

namespace path_record {
inline constexpr std::size_t kBytes = 64;
inline constexpr std::size_t kDgid = 8;
inline constexpr std::size_t kSgid = 24;
inline constexpr Field kDlid{320, 16};
inline constexpr Field kSlid{336, 16};
inline constexpr Field kFlowLabel{356, 20};
inline constexpr Field kHopLimit{376, 8};
inline constexpr Field kTrafficClass{384, 8};
inline constexpr Field kReversible{392, 1};
inline constexpr Field kNumbPath{393, 7};
inline constexpr Field kPkey{400, 16};
inline constexpr Field kSl{428, 4};
inline constexpr Field kMtuSelector{432, 2};
inline constexpr Field kMtu{434, 6};
inline constexpr Field kRateSelector{440, 2};
inline constexpr Field kRate{442, 6};
inline constexpr Field kLifetimeSelector{448, 2};
inline constexpr Field kLifetime{450, 6};
enum ComponentBit : std::uint8_t {
    kHasDgid = 2,
    kHasSgid = 3,
    kHasDlid = 4,
    kHasSlid = 5,
    kHasNumbPath = 12,
    kHasPkey = 13,
    kHasSl = 15,
    kHasMtuSelector = 16,
    kHasMtu = 17,
    kHasRateSelector = 18,
    kHasRate = 19,
};
}  // namespace path_record

namespace multi_path_record {
inline constexpr Field kNumbPath{41, 7};
inline constexpr Field kPkey{48, 16};
inline constexpr Field kSl{76, 4};
inline constexpr Field kSourceCount{120, 8};
inline constexpr Field kDestinationCount{128, 8};
inline constexpr std::size_t kGids = 24;
enum ComponentBit : std::uint8_t { kHasNumbPath = 6, kHasPkey = 7, kHasSl = 9 };
}  // namespace multi_path_record

namespace mc_member_record {
inline constexpr std::size_t kBytes = 52;
inline constexpr std::size_t kMgid = 0;
inline constexpr std::size_t kPortGid = 16;
inline constexpr Field kQkey{256, 32};
inline constexpr Field kMlid{288, 16};
inline constexpr Field kMtuSelector{304, 2};
inline constexpr Field kMtu{306, 6};
inline constexpr Field kTrafficClass{312, 8};
inline constexpr Field kPkey{320, 16};
inline constexpr Field kRateSelector{336, 2};
inline constexpr Field kRate{338, 6};
inline constexpr Field kLifetimeSelector{344, 2};
inline constexpr Field kLifetime{346, 6};
inline constexpr Field kSl{352, 4};
inline constexpr Field kFlowLabel{356, 20};
inline constexpr Field kHopLimit{376, 8};
inline constexpr Field kScope{384, 4};
inline constexpr Field kJoinState{388, 4};
inline constexpr Field kProxyJoin{392, 1};
inline constexpr auto kComponents = std::to_array<Component>({
    {0, 128},
    {128, 128},
    {256, 32},
    {288, 16},
    kNone,
    {306, 6},
    {312, 8},
    {320, 16},
    kNone,
    {338, 6},
    kNone,
    {346, 6},
    {352, 4},
    {356, 20},
    {376, 8},
    {384, 4},
    {388, 4},
    {392, 1},
});
// JoinState (IBA 15.2.5.17). Full members, those that only send included, make a group and keep it
// (OpenSM 3.3.24, osm_mgrp_add_port(), osm_mgrp_remove_port()).
inline constexpr std::uint8_t kFullMember = 1;
inline constexpr std::uint8_t kNonMember = 2;
inline constexpr std::uint8_t kSendOnlyMember = 4;
inline constexpr std::uint8_t kSendOnlyFullMember = 8;
constexpr bool keeps_group(std::uint8_t state) {
    return (state & (kFullMember | kSendOnlyFullMember)) != 0;
}
constexpr bool receives(std::uint8_t state) {
    return (state & (kFullMember | kNonMember)) != 0;
}
// The components that a join must have, and those that create a group (IBA 15.2.5.17).
inline constexpr std::uint64_t kJoin = 1U << 0 | 1U << 1 | 1U << 16;
inline constexpr std::uint64_t kCreate = kJoin | 1U << 2 | 1U << 6 | 1U << 7 | 1U << 12 | 1U << 13;
}  // namespace mc_member_record

namespace service_record {
inline constexpr std::size_t kBytes = 176;
inline constexpr Field kId{0, 64};
inline constexpr std::size_t kGid = 8;
inline constexpr Field kPkey{192, 16};
inline constexpr Field kLease{224, 32};  // seconds; all ones: for ever
inline constexpr auto kComponents = std::to_array<Component>({
    {0, 64},    {64, 128},  {192, 16},  kNone,      {224, 32},  {256, 128}, {384, 512}, {896, 8},
    {904, 8},   {912, 8},   {920, 8},   {928, 8},   {936, 8},   {944, 8},   {952, 8},   {960, 8},
    {968, 8},   {976, 8},   {984, 8},   {992, 8},   {1000, 8},  {1008, 8},  {1016, 8},  {1024, 16},
    {1040, 16}, {1056, 16}, {1072, 16}, {1088, 16}, {1104, 16}, {1120, 16}, {1136, 16}, {1152, 32},
    {1184, 32}, {1216, 32}, {1248, 32}, {1280, 64}, {1344, 64},
});
}  // namespace service_record

namespace inform_info {
inline constexpr std::size_t kBytes = 36;
inline constexpr Field kLidBegin{128, 16};
inline constexpr Field kLidEnd{144, 16};
inline constexpr Field kIsGeneric{176, 8};
inline constexpr Field kSubscribe{184, 8};
inline constexpr Field kType{192, 16};
inline constexpr Field kTrapNumber{208, 16};
inline constexpr Field kQpn{224, 24};
inline constexpr Field kProducerType{264, 24};
inline constexpr std::uint16_t kAll = 0xFFFF;
inline constexpr std::uint32_t kAllProducers = 0xFFFFFF;
// InformInfoRecord: the subscriber's GID and number, then the above.
inline constexpr std::size_t kRecordBytes = 64;
inline constexpr std::size_t kRecordInfo = 24;
inline constexpr auto kRecordComponents = std::to_array<Component>({{0, 128}, {128, 16}});
}  // namespace inform_info

// Returns true if `record` has what `query` selects by `mask`.
inline bool selects(std::uint64_t mask, std::span<const Component> components, ConstBytes query,
                    ConstBytes record) {
    for (std::size_t i = 0; i < components.size(); ++i) {
        if ((mask >> i & 1) == 0) {
            continue;
        }
        for (std::uint16_t done = 0; done < components[i].bits;) {
            const auto bits = static_cast<std::uint8_t>(std::min(components[i].bits - done, 64));
            const Field part{static_cast<std::uint16_t>(components[i].offset + done), bits};
            if (get(query, part) != get(record, part)) {
                return false;
            }
            done = static_cast<std::uint16_t>(done + bits);
        }
    }
    return true;
}

}  // namespace fabric::mad
