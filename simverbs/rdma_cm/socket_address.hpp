// A socket address as programs pass it: sockaddr_in, sockaddr_in6 or sockaddr_ib in the 128 bytes
// of a sockaddr_storage. Everything that a program has written is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/net/gid.hpp"

namespace simverbs::rdma_cm {

// The values of Linux. A program may write any 16 bits.
enum class AddressFamily : std::uint16_t { kNone = 0, kInet = 2, kInet6 = 10, kInfiniband = 27 };

// Returns the IPv4-mapped IPv6 address, which is also the GID of a RoCE port with that address.
fabric::Gid mapped_ipv4(std::uint32_t address);

class SocketAddress {
  public:
    static constexpr std::size_t kStorageBytes = 128;
    using Storage = std::array<std::uint8_t, kStorageBytes>;

    SocketAddress() = default;
    // Takes the bytes of its family (size()) from at most kStorageBytes; missing ones are zero.
    explicit SocketAddress(std::span<const std::uint8_t> bytes);
    // The unspecified address of a family, port 0.
    explicit SocketAddress(AddressFamily family);

    static SocketAddress inet(std::uint32_t address, std::uint16_t port);
    static SocketAddress inet6(const fabric::Gid& address, std::uint16_t port);
    static SocketAddress infiniband(const fabric::Gid& gid, std::uint16_t pkey,
                                    std::uint64_t service_id, std::uint64_t service_mask);

    [[nodiscard]] const Storage& bytes() const { return bytes_; }
    [[nodiscard]] AddressFamily family() const;
    // Bytes of the sockaddr; 0 of a family that rdma_cm does not know.
    [[nodiscard]] std::size_t size() const;

    // Returns the port in host order; of AF_IB the low bits of the service id that its mask covers.
    [[nodiscard]] std::uint16_t port() const;
    void set_port(std::uint16_t port);

    // Returns the IP address as an IPv6 address, IPv4-mapped where it is one; the GID of AF_IB.
    [[nodiscard]] fabric::Gid gid() const;
    void set_gid(const fabric::Gid& gid);
    // The unspecified address: 0.0.0.0/8, ::, the GID of zeros.
    [[nodiscard]] bool is_zero() const;
    // True of 127.0.0.0/16, ::1, and ::1 of AF_IB. The rest of 127.0.0.0/8 belongs to simulated
    // hosts.
    [[nodiscard]] bool is_loopback() const;
    // True where rdma_cm takes it for any address.
    [[nodiscard]] bool is_any() const { return is_zero() || is_loopback(); }
    // True of fe80::/10.
    [[nodiscard]] bool is_link_local() const;
    [[nodiscard]] bool has_same_address(const SocketAddress& other) const;

    // The scope of an AF_INET6 address, an interface of the host.
    [[nodiscard]] std::uint32_t scope_id() const;
    void set_scope_id(std::uint32_t scope);
    // Returns the traffic class within the flow information of AF_INET6 and AF_IB.
    [[nodiscard]] std::uint8_t traffic_class() const;

    // The members of an AF_IB address.
    [[nodiscard]] std::uint16_t pkey() const;
    void set_pkey(std::uint16_t pkey);
    [[nodiscard]] std::uint64_t service_id() const;
    [[nodiscard]] std::uint64_t service_mask() const;
    void set_service_id(std::uint64_t id, std::uint64_t mask);
    void set_flow_label(std::uint32_t label);

    friend bool operator==(const SocketAddress&, const SocketAddress&) = default;

  private:
    Storage bytes_{};
};

}  // namespace simverbs::rdma_cm
