#include "simverbs/rdma_cm/cma_header.hpp"

#include <algorithm>

#include "fabric/core/assert.hpp"
#include "fabric/mad/field.hpp"

namespace simverbs::rdma_cm {

using fabric::Gid;
using fabric::mad::Field;
using fabric::mad::get;
using fabric::mad::set;

namespace {

constexpr Field kVersion{0, 8};
constexpr Field kIpVersion{8, 4};
constexpr Field kPort{16, 16};
constexpr std::size_t kSourceByte = 4;
constexpr std::size_t kDestinationByte = 20;
constexpr std::size_t kAddressBytes = 16;
constexpr std::uint16_t kInetOffset = 96;  // an IPv4 address takes the last 32 bits

void write_address(std::span<std::uint8_t> bytes, const SocketAddress& address) {
    const Gid gid = address.gid();
    const std::size_t begin = address.family() == AddressFamily::kInet ? kInetOffset / 8 : 0;
    std::copy(gid.bytes.begin() + static_cast<std::ptrdiff_t>(begin), gid.bytes.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(begin));
}

SocketAddress read_address(std::span<const std::uint8_t> bytes, std::uint8_t ip_version,
                           std::uint16_t port) {
    if (ip_version == 4) {
        return SocketAddress::inet(static_cast<std::uint32_t>(get(bytes, {kInetOffset, 32})), port);
    }
    if (ip_version == 6) {
        Gid gid;
        std::ranges::copy(bytes, gid.bytes.begin());
        return SocketAddress::inet6(gid, port);
    }
    return {};
}

}  // namespace

void write_cma_header(std::span<std::uint8_t> bytes, const SocketAddress& source,
                      const SocketAddress& destination) {
    SIMVERBS_ASSERT(bytes.size() >= kCmaHeaderBytes, "a header in {} bytes", bytes.size());
    std::ranges::fill(bytes.first(kCmaHeaderBytes), std::uint8_t{0});
    set(bytes, kIpVersion, source.family() == AddressFamily::kInet ? 4 : 6);
    set(bytes, kPort, source.port());
    write_address(bytes.subspan(kSourceByte, kAddressBytes), source);
    write_address(bytes.subspan(kDestinationByte, kAddressBytes), destination);
}

CmaHeader read_cma_header(std::span<const std::uint8_t> bytes) {
    SIMVERBS_ASSERT(bytes.size() >= kCmaHeaderBytes, "a header in {} bytes", bytes.size());
    CmaHeader header{.version = static_cast<std::uint8_t>(get(bytes, kVersion)),
                     .ip_version = static_cast<std::uint8_t>(get(bytes, kIpVersion)),
                     .port = static_cast<std::uint16_t>(get(bytes, kPort))};
    header.source =
        read_address(bytes.subspan(kSourceByte, kAddressBytes), header.ip_version, header.port);
    header.destination =
        read_address(bytes.subspan(kDestinationByte, kAddressBytes), header.ip_version, 0);
    return header;
}

}  // namespace simverbs::rdma_cm
