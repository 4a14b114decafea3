#include "simverbs/rdma_cm/socket_address.hpp"

#include <algorithm>
#include <cstring>

#include "fabric/mad/field.hpp"

namespace simverbs::rdma_cm {

using fabric::Gid;
using fabric::mad::Field;
using fabric::mad::get;
using fabric::mad::set;

namespace {

constexpr Field kPort{16, 16};
constexpr Field kInetAddress{32, 32};
constexpr std::size_t kLongAddressByte = 8;  // of AF_INET6 and AF_IB
constexpr Field kFlowInfo{32, 32};           // likewise
constexpr std::size_t kScopeByte = 24;
constexpr Field kPkey{16, 16};
constexpr Field kServiceId{24 * 8, 64};
constexpr Field kServiceMask{32 * 8, 64};

constexpr std::size_t kInetBytes = 16;
constexpr std::size_t kInet6Bytes = 28;
constexpr std::size_t kInfinibandBytes = 48;

std::uint32_t ipv4_of(const Gid& mapped) {
    return static_cast<std::uint32_t>(get(mapped.bytes, {96, 32}));
}

}  // namespace

Gid mapped_ipv4(std::uint32_t address) {
    Gid gid;
    set(gid.bytes, {80, 16}, 0xFFFF);
    set(gid.bytes, {96, 32}, address);
    return gid;
}

SocketAddress::SocketAddress(AddressFamily family) {
    std::memcpy(bytes_.data(), &family, sizeof family);
}

SocketAddress::SocketAddress(std::span<const std::uint8_t> bytes) {
    std::ranges::copy(bytes.first(std::min(bytes.size(), kStorageBytes)), bytes_.begin());
    std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(size(), 2)),
              bytes_.end(), std::uint8_t{0});
}

SocketAddress SocketAddress::inet(std::uint32_t address, std::uint16_t port) {
    SocketAddress made(AddressFamily::kInet);
    set(made.bytes_, kInetAddress, address);
    made.set_port(port);
    return made;
}

SocketAddress SocketAddress::inet6(const Gid& address, std::uint16_t port) {
    SocketAddress made(AddressFamily::kInet6);
    made.set_gid(address);
    made.set_port(port);
    return made;
}

SocketAddress SocketAddress::infiniband(const Gid& gid, std::uint16_t pkey,
                                        std::uint64_t service_id, std::uint64_t service_mask) {
    SocketAddress made(AddressFamily::kInfiniband);
    made.set_gid(gid);
    made.set_pkey(pkey);
    made.set_service_id(service_id, service_mask);
    return made;
}

AddressFamily SocketAddress::family() const {
    AddressFamily family{};
    std::memcpy(&family, bytes_.data(), sizeof family);
    return family;
}

std::size_t SocketAddress::size() const {
    switch (family()) {
        case AddressFamily::kInet:
            return kInetBytes;
        case AddressFamily::kInet6:
            return kInet6Bytes;
        case AddressFamily::kInfiniband:
            return kInfinibandBytes;
        case AddressFamily::kNone:
            break;
    }
    return 0;
}

std::uint16_t SocketAddress::port() const {
    return static_cast<std::uint16_t>(family() == AddressFamily::kInfiniband
                                          ? service_id() & service_mask()
                                          : get(bytes_, kPort));
}

void SocketAddress::set_port(std::uint16_t port) {
    if (family() == AddressFamily::kInfiniband) {
        set_service_id((service_id() & service_mask()) | port, ~std::uint64_t{0});
    } else {
        set(bytes_, kPort, port);
    }
}

Gid SocketAddress::gid() const {
    if (family() == AddressFamily::kInet) {
        return mapped_ipv4(static_cast<std::uint32_t>(get(bytes_, kInetAddress)));
    }
    Gid gid;
    std::memcpy(gid.bytes.data(), bytes_.data() + kLongAddressByte, gid.bytes.size());
    return gid;
}

void SocketAddress::set_gid(const Gid& gid) {
    if (family() == AddressFamily::kInet) {
        set(bytes_, kInetAddress, ipv4_of(gid));
    } else {
        std::memcpy(bytes_.data() + kLongAddressByte, gid.bytes.data(), gid.bytes.size());
    }
}

bool SocketAddress::is_zero() const {
    if (family() == AddressFamily::kInet) {
        return get(bytes_, kInetAddress) >> 24 == 0;
    }
    return size() != 0 && gid() == Gid{};
}

bool SocketAddress::is_loopback() const {
    if (family() == AddressFamily::kInet) {
        return get(bytes_, kInetAddress) >> 16 == 0x7F00;
    }
    Gid loopback;
    loopback.bytes.back() = 1;
    return size() != 0 && gid() == loopback;
}

bool SocketAddress::is_link_local() const {
    const Gid address = gid();
    return family() == AddressFamily::kInet6 && address.bytes[0] == 0xFE &&
           (address.bytes[1] & 0xC0) == 0x80;
}

bool SocketAddress::has_same_address(const SocketAddress& other) const {
    return family() == other.family() && gid() == other.gid();
}

std::uint32_t SocketAddress::scope_id() const {
    std::uint32_t scope = 0;
    std::memcpy(&scope, bytes_.data() + kScopeByte, sizeof scope);
    return scope;
}

void SocketAddress::set_scope_id(std::uint32_t scope) {
    std::memcpy(bytes_.data() + kScopeByte, &scope, sizeof scope);
}

std::uint8_t SocketAddress::traffic_class() const {
    return static_cast<std::uint8_t>(get(bytes_, kFlowInfo) >> 20);
}

std::uint16_t SocketAddress::pkey() const {
    return static_cast<std::uint16_t>(get(bytes_, kPkey));
}

void SocketAddress::set_pkey(std::uint16_t pkey) {
    set(bytes_, kPkey, pkey);
}

std::uint64_t SocketAddress::service_id() const {
    return get(bytes_, kServiceId);
}

std::uint64_t SocketAddress::service_mask() const {
    return get(bytes_, kServiceMask);
}

void SocketAddress::set_service_id(std::uint64_t id, std::uint64_t mask) {
    set(bytes_, kServiceId, id);
    set(bytes_, kServiceMask, mask);
}

void SocketAddress::set_flow_label(std::uint32_t label) {
    set(bytes_, kFlowInfo, label);
}

}  // namespace simverbs::rdma_cm
