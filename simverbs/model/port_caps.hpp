// The capabilities of a port (ibv_port_attr.port_cap_flags; PortInfo:CapabilityMask, IBA 14.2.5.6),
// as far as anything here makes it true.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simverbs/model/enum_set.hpp"

namespace simverbs {

enum class PortCap : std::uint32_t {
    kSm = 1U << 1,
    kNoticeSup = 1U << 2,
    kTrapSup = 1U << 3,
    kAutoMigrSup = 1U << 5,
    kSlMapSup = 1U << 6,
    kSysImageGuidSup = 1U << 11,
    kExtendedSpeedsSup = 1U << 14,
    kCapMask2Sup = 1U << 15,
    kCmSup = 1U << 16,
    kClientRegSup = 1U << 25,
    kIpBasedGids = 1U << 26,
};
template <>
inline constexpr bool kIsSetMember<PortCap> = true;
using PortCaps = EnumSet<PortCap>;
struct PortCapName {
    PortCap cap;
    std::string_view name;
};
inline constexpr auto kPortCapNames = std::to_array<PortCapName>({
    {PortCap::kSm, "SM"},
    {PortCap::kNoticeSup, "NOTICE_SUP"},
    {PortCap::kTrapSup, "TRAP_SUP"},
    {PortCap::kAutoMigrSup, "AUTO_MIGR_SUP"},
    {PortCap::kSlMapSup, "SL_MAP_SUP"},
    {PortCap::kSysImageGuidSup, "SYS_IMAGE_GUID_SUP"},
    {PortCap::kExtendedSpeedsSup, "EXTENDED_SPEEDS_SUP"},
    {PortCap::kCapMask2Sup, "CAP_MASK2_SUP"},
    {PortCap::kCmSup, "CM_SUP"},
    {PortCap::kClientRegSup, "CLIENT_REG_SUP"},
    {PortCap::kIpBasedGids, "IP_BASED_GIDS"},
});
constexpr std::string_view to_string(PortCap cap) {
    for (const PortCapName& row : kPortCapNames) {
        if (row.cap == cap) {
            return row.name;
        }
    }
    return "unknown";
}

}  // namespace simverbs
