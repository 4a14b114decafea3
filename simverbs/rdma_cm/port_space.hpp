// Port spaces of rdma_cm and the service ids made of them (IBA A11, Linux rdma_get_service_id).
#pragma once

#include <cstdint>

namespace simverbs::rdma_cm {

// The values of enum rdma_ucm_port_space.
enum class PortSpace : std::uint16_t {
    kIpoib = 0x0002,
    kIb = 0x013F,
    kTcp = 0x0106,
    kUdp = 0x0111
};

// RDMA_UDP_QKEY of Linux: the Q_Key of datagram ids that nobody gave another one.
inline constexpr std::uint32_t kUdpQkey = 0x0123'4567;

// The bits of a service id that name the port space, and the port within it.
inline constexpr std::uint64_t kPortSpaceMask = 0xFFFF'FFFF'FFFF'0000;

constexpr std::uint64_t make_service_id(PortSpace space, std::uint16_t port) {
    return std::uint64_t{static_cast<std::uint16_t>(space)} << 16 | port;
}
constexpr PortSpace port_space_of(std::uint64_t service_id) {
    return static_cast<PortSpace>(service_id >> 16 & 0xFFFF);
}
constexpr std::uint16_t port_of(std::uint64_t service_id) {
    return static_cast<std::uint16_t>(service_id);
}

// The values of enum ib_qp_type that rdma_cm gives an id. A program may ask for any 8 bits.
enum class QpType : std::uint8_t {
    kUnspecified = 0,  // matches every request
    kRc = 2,
    kUc = 3,
    kUd = 4,
    kXrcIni = 9,
    kXrcTgt = 10,
};

}  // namespace simverbs::rdma_cm
