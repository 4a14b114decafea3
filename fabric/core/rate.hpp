// Link rates as integer bits per second and the time that bytes take on the wire. The rate is the
// data rate, after line coding (8b/10b up to QDR, 64b/66b from FDR10 on); forward error correction
// costs nothing here. Refuses fractions of a bit per second: FDR is rounded down.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/core/sim_time.hpp"

namespace fabric {

// PortInfo:LinkWidthActive (IBA 14.2.5.6).
enum class LinkWidth : std::uint8_t { k1x = 1, k4x = 2, k8x = 4, k12x = 8, k2x = 16 };

// As struct ibv_port_attr's active_speed and, from XDR on, active_speed_ex.
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

constexpr std::uint32_t lanes(LinkWidth width) {
    switch (width) {
        case LinkWidth::k1x:
            return 1;
        case LinkWidth::k2x:
            return 2;
        case LinkWidth::k4x:
            return 4;
        case LinkWidth::k8x:
            return 8;
        case LinkWidth::k12x:
            return 12;
    }
    return 0;
}

constexpr std::string_view to_string(LinkSpeed speed) {
    switch (speed) {
        case LinkSpeed::kSdr:
            return "SDR";
        case LinkSpeed::kDdr:
            return "DDR";
        case LinkSpeed::kQdr:
            return "QDR";
        case LinkSpeed::kFdr10:
            return "FDR10";
        case LinkSpeed::kFdr:
            return "FDR";
        case LinkSpeed::kEdr:
            return "EDR";
        case LinkSpeed::kHdr:
            return "HDR";
        case LinkSpeed::kNdr:
            return "NDR";
        case LinkSpeed::kXdr:
            return "XDR";
    }
    return "?";
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
    std::uint64_t signalling = 0;  // of a lane, kbit/s
    std::uint64_t data_bits = 64;
    std::uint64_t line_bits = 66;
    switch (speed) {
        case LinkSpeed::kSdr:
            signalling = 2'500'000;
            break;
        case LinkSpeed::kDdr:
            signalling = 5'000'000;
            break;
        case LinkSpeed::kQdr:
            signalling = 10'000'000;
            break;
        case LinkSpeed::kFdr10:
            signalling = 10'312'500;
            break;
        case LinkSpeed::kFdr:
            signalling = 14'062'500;
            break;
        case LinkSpeed::kEdr:
            signalling = 25'781'250;
            break;
        case LinkSpeed::kHdr:
            signalling = 51'562'500;
            break;
        case LinkSpeed::kNdr:
            signalling = 103'125'000;
            break;
        case LinkSpeed::kXdr:
            signalling = 206'250'000;
            break;
    }
    if (speed == LinkSpeed::kSdr || speed == LinkSpeed::kDdr || speed == LinkSpeed::kQdr) {
        data_bits = 8;
        line_bits = 10;
    }
    return Rate(lanes(width) * signalling * 1000 * data_bits / line_bits);
}

static_assert(effective_rate(LinkWidth::k1x, LinkSpeed::kSdr) == Rate(2'000'000'000));
static_assert(effective_rate(LinkWidth::k4x, LinkSpeed::kFdr) == Rate(54'545'454'545));
static_assert(effective_rate(LinkWidth::k4x, LinkSpeed::kEdr) == Rate(100'000'000'000));
static_assert(effective_rate(LinkWidth::k4x, LinkSpeed::kXdr) == Rate(800'000'000'000));
static_assert(Rate(100'000'000'000).transmission_time(1024) == 81'920_ps);
static_assert(Rate(3).transmission_time(1) == SimDuration(2'666'666'666'667));

}  // namespace fabric
