// Link rates as integer bits per second and the time that bytes take on the wire. The rate is the
// data rate, after line coding and, from HDR on, forward error correction. Refuses fractions of a
// bit per second: FDR is rounded down.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "fabric/core/sim_time.hpp"

namespace fabric {

// PortInfo:LinkWidthActive (IBA 14.2.5.6), ibv_port_attr.active_width.
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

// As struct ibv_port_attr's active_speed, which has eight bits, and active_speed_ex from XDR on.
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
    std::uint32_t nominal;        // of a lane, 100 Mb/s: as Linux states rates to programs
    std::string_view source;
};

// clang-format off
inline constexpr auto kLinkSpeeds = std::to_array<LinkSpeedProperties>({
    {LinkSpeed::kSdr,   "SDR",     2'500'000,   8, 10,    25,  "IBA volume 2"},
    {LinkSpeed::kDdr,   "DDR",     5'000'000,   8, 10,    50,  "IBA volume 2"},
    {LinkSpeed::kQdr,   "QDR",    10'000'000,   8, 10,   100,  "IBA volume 2"},
    {LinkSpeed::kFdr10, "FDR10",  10'312'500,  64, 66,   100,  "vendor, 10.3125 Gbaud"},
    {LinkSpeed::kFdr,   "FDR",    14'062'500,  64, 66,   140,  "IBA volume 2, 14.0625 Gbaud"},
    {LinkSpeed::kEdr,   "EDR",    25'781'250,  64, 66,   250,  "IBA volume 2, 25.78125 Gbaud"},
    {LinkSpeed::kHdr,   "HDR",    53'125'000, 256, 272,  500,  "IBA volume 2, 26.5625 Gbaud PAM4"},
    {LinkSpeed::kNdr,   "NDR",   106'250'000, 256, 272, 1000,  "IBA volume 2, 53.125 Gbaud PAM4"},
    {LinkSpeed::kXdr,   "XDR",   212'500'000, 256, 272, 2000,  "IBA volume 2, 106.25 Gbaud PAM4"},
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

class Rate {
  public:
    // At least 1 bit/s.
    constexpr explicit Rate(std::uint64_t bits_per_second)
        : bits_per_second_(bits_per_second),
          whole_ps_per_byte_(
              kPsBitsPerByte % bits_per_second == 0 ? kPsBitsPerByte / bits_per_second : 0) {}

    [[nodiscard]] constexpr std::uint64_t bits_per_second() const { return bits_per_second_; }

    // Until the last bit has left, rounded up to a picosecond. The rates from EDR on take a whole
    // number of picoseconds a byte, which spares them a division.
    [[nodiscard]] constexpr SimDuration transmission_time(std::uint32_t bytes) const {
        if (whole_ps_per_byte_ != 0) {
            return SimDuration(static_cast<std::int64_t>(bytes * whole_ps_per_byte_));
        }
        __extension__ using Wide = unsigned __int128;
        const Wide scaled = static_cast<Wide>(bytes) * kPsBitsPerByte;
        return SimDuration(
            static_cast<std::int64_t>((scaled + bits_per_second_ - 1) / bits_per_second_));
    }

    friend constexpr bool operator==(Rate, Rate) = default;

  private:
    static constexpr std::uint64_t kPsBitsPerByte = 8 * 1'000'000'000'000U;

    std::uint64_t bits_per_second_;
    std::uint64_t whole_ps_per_byte_;  // 0: not a whole number
};

// IBA vol. 2, 5.6 and 6.4: lane rate times coding.
constexpr Rate effective_rate(LinkWidth width, LinkSpeed speed) {
    const LinkSpeedProperties& row = properties(speed);
    return Rate(std::uint64_t{properties(width).lanes} * row.lane_kilobits * 1000 *
                row.encoding_data / row.encoding_line);
}

// The rate of a port as Linux states it to programs, in units of 100 Mb/s.
constexpr std::uint32_t nominal_rate(LinkWidth width, LinkSpeed speed) {
    return properties(width).lanes * properties(speed).nominal;
}

static_assert(effective_rate(LinkWidth::k1x, LinkSpeed::kSdr) == Rate(2'000'000'000));
static_assert(effective_rate(LinkWidth::k4x, LinkSpeed::kFdr) == Rate(54'545'454'545));
static_assert(effective_rate(LinkWidth::k4x, LinkSpeed::kEdr) == Rate(100'000'000'000));
static_assert(effective_rate(LinkWidth::k4x, LinkSpeed::kXdr) == Rate(800'000'000'000));
static_assert(Rate(100'000'000'000).transmission_time(1024) == 81'920_ps);
static_assert(Rate(3).transmission_time(1) == SimDuration(2'666'666'666'667));

}  // namespace fabric
