// How many bytes of payload a packet carries at the most (PortInfo:NeighborMTU, IBA 14.2.5.6).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace fabric {

// 256 bytes, and twice as much with each step, as enum ibv_mtu.
enum class Mtu : std::uint8_t { k256 = 1, k512 = 2, k1024 = 3, k2048 = 4, k4096 = 5 };
inline constexpr std::array kMtus = {Mtu::k256, Mtu::k512, Mtu::k1024, Mtu::k2048, Mtu::k4096};

constexpr std::uint32_t to_bytes(Mtu mtu) {
    return 128U << static_cast<unsigned>(mtu);
}
static_assert(to_bytes(Mtu::k256) == 256 && to_bytes(Mtu::k4096) == 4096);

// The largest that fits into `bytes` (an Ethernet MTU without its headers, say).
constexpr std::optional<Mtu> largest_mtu_within(std::uint32_t bytes) {
    std::optional<Mtu> largest;
    for (const Mtu mtu : kMtus) {
        if (to_bytes(mtu) <= bytes) {
            largest = mtu;
        }
    }
    return largest;
}

}  // namespace fabric
