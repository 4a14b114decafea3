// The enumerations in which a port describes itself: state, link layer, MTU, width, speed, GIDs.
//
// Values are those on the wire (PortInfo, IBA 14.2.5.6) and of ibv_port_attr. Which transitions a
// port takes is the fabric's table, not this one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "simverbs/model/enum_set.hpp"

namespace simverbs {

enum class LinkLayer : std::uint8_t { kUnspecified, kInfiniband, kEthernet };
inline constexpr auto kLinkLayerNames =
    std::to_array<std::string_view>({"Unspecified", "InfiniBand", "Ethernet"});
constexpr std::string_view to_string(LinkLayer layer) {
    return kLinkLayerNames[static_cast<std::size_t>(layer)];
}

// enum ibv_port_state.
enum class LogicalPortState : std::uint8_t { kNop, kDown, kInit, kArmed, kActive, kActiveDefer };
inline constexpr auto kLogicalPortStateNames =
    std::to_array<std::string_view>({"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"});
constexpr std::string_view to_string(LogicalPortState state) {
    return kLogicalPortStateNames[static_cast<std::size_t>(state)];
}

// ibv_port_attr.phys_state.
enum class PhysicalPortState : std::uint8_t {
    kSleep = 1,
    kPolling = 2,
    kDisabled = 3,
    kTraining = 4,
    kLinkUp = 5,
    kErrorRecovery = 6,
    kPhyTest = 7,
};
inline constexpr auto kPhysicalPortStateNames =
    std::to_array<std::string_view>({"unknown", "SLEEP", "POLLING", "DISABLED", "TRAINING",
                                     "LINK_UP", "LINK_ERROR_RECOVERY", "PHY_TEST"});
constexpr std::string_view to_string(PhysicalPortState state) {
    return kPhysicalPortStateNames[static_cast<std::size_t>(state)];
}

// enum ibv_mtu: 256 bytes, and twice as much with each step.
enum class Mtu : std::uint8_t { k256 = 1, k512 = 2, k1024 = 3, k2048 = 4, k4096 = 5 };
constexpr std::uint32_t mtu_bytes(Mtu mtu) {
    return 128U << static_cast<unsigned>(mtu);
}
constexpr std::string_view to_string(Mtu mtu) {
    constexpr std::array<std::string_view, 6> kNames = {"invalid", "256",  "512",
                                                        "1024",    "2048", "4096"};
    return kNames[static_cast<std::size_t>(mtu)];
}
// Nothing for a code that enum ibv_mtu does not have.
constexpr std::optional<Mtu> mtu_from_code(std::uint32_t code) {
    if (code < 1 || code > 5) {
        return std::nullopt;
    }
    return static_cast<Mtu>(code);
}
// The largest MTU that fits into `bytes` (an Ethernet MTU without its headers, say).
constexpr std::optional<Mtu> largest_mtu_within(std::uint32_t bytes) {
    for (const Mtu mtu : {Mtu::k4096, Mtu::k2048, Mtu::k1024, Mtu::k512, Mtu::k256}) {
        if (mtu_bytes(mtu) <= bytes) {
            return mtu;
        }
    }
    return std::nullopt;
}

// ibv_port_attr.active_width.
enum class LinkWidth : std::uint8_t { k1x = 1, k4x = 2, k8x = 4, k12x = 8, k2x = 16 };
struct LinkWidthProperties {
    LinkWidth width;
    std::string_view name;
    std::uint8_t lanes;
};
inline constexpr auto kLinkWidths = std::to_array<LinkWidthProperties>({
    {LinkWidth::k1x, "1x", 1},
    {LinkWidth::k2x, "2x", 2},
    {LinkWidth::k4x, "4x", 4},
    {LinkWidth::k8x, "8x", 8},
    {LinkWidth::k12x, "12x", 12},
});
constexpr const LinkWidthProperties& properties(LinkWidth width) {
    for (const LinkWidthProperties& row : kLinkWidths) {
        if (row.width == width) {
            return row;
        }
    }
    return kLinkWidths[0];
}
constexpr std::string_view to_string(LinkWidth width) {
    return properties(width).name;
}

// ibv_port_attr.active_speed has eight bits: XDR fits only into active_speed_ex.
enum class LinkSpeed : std::uint16_t {
    kSdr = 1,
    kDdr = 2,
    kQdr = 4,
    kFdr10 = 8,
    kFdr = 16,
    kEdr = 32,
    kHdr = 64,
    kNdr = 128,
    kXdr = 256,
};
struct LinkSpeedProperties {
    LinkSpeed speed;
    std::string_view name;
    std::uint32_t lane_kilobits;  // signalling rate of a lane, kbit/s
    std::uint32_t encoding_data;  // of every `encoding_line` bits sent,
    std::uint32_t encoding_line;  // `encoding_data` carry data
    std::string_view source;
};
// clang-format off
inline constexpr auto kLinkSpeeds = std::to_array<LinkSpeedProperties>({
    {LinkSpeed::kSdr,   "SDR",     2'500'000,   8, 10,  "IBA volume 2"},
    {LinkSpeed::kDdr,   "DDR",     5'000'000,   8, 10,  "IBA volume 2"},
    {LinkSpeed::kQdr,   "QDR",    10'000'000,   8, 10,  "IBA volume 2"},
    {LinkSpeed::kFdr10, "FDR10",  10'312'500,  64, 66,  "vendor, 10.3125 Gbaud"},
    {LinkSpeed::kFdr,   "FDR",    14'062'500,  64, 66,  "IBA volume 2, 14.0625 Gbaud"},
    {LinkSpeed::kEdr,   "EDR",    25'781'250,  64, 66,  "IBA volume 2, 25.78125 Gbaud"},
    {LinkSpeed::kHdr,   "HDR",    53'125'000, 256, 272, "IBA volume 2, 26.5625 Gbaud PAM4"},
    {LinkSpeed::kNdr,   "NDR",   106'250'000, 256, 272, "IBA volume 2, 53.125 Gbaud PAM4"},
    {LinkSpeed::kXdr,   "XDR",   212'500'000, 256, 272, "IBA volume 2, 106.25 Gbaud PAM4"},
});
// clang-format on
constexpr const LinkSpeedProperties& properties(LinkSpeed speed) {
    for (const LinkSpeedProperties& row : kLinkSpeeds) {
        if (row.speed == speed) {
            return row;
        }
    }
    return kLinkSpeeds[0];
}
constexpr std::string_view to_string(LinkSpeed speed) {
    return properties(speed).name;
}

// Data rate of a link in kbit/s, after the line encoding and rounded down.
constexpr std::uint64_t data_rate_kilobits(LinkSpeed speed, LinkWidth width) {
    const LinkSpeedProperties& row = properties(speed);
    return std::uint64_t{row.lane_kilobits} * properties(width).lanes * row.encoding_data /
           row.encoding_line;
}

// enum ibv_port_cap_flags: what a port says of itself, as far as anything here makes it true.
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
