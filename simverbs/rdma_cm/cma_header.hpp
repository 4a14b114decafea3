// The header that rdma_cm puts before the private data of a REQ and of a SIDR_REQ (struct cma_hdr
// of Linux): the IP addresses of both sides and the port number of the sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/net/gid.hpp"

#include "simverbs/rdma_cm/socket_address.hpp"

namespace simverbs::rdma_cm {

inline constexpr std::size_t kCmaHeaderBytes = 36;

struct CmaHeader {
    std::uint8_t version = 0;     // 0 is the only one
    std::uint8_t ip_version = 0;  // 4 or 6 where the addresses count; a peer may send 4 bits
    std::uint16_t port = 0;       // of the sender
    SocketAddress source;         // of the sender, with its port; nothing of another IP version
    SocketAddress destination;    // without port
};

// Writes the header of `source`, both of one IP family, into the first kCmaHeaderBytes.
void write_cma_header(std::span<std::uint8_t> bytes, const SocketAddress& source,
                      const SocketAddress& destination);

// `bytes` holds a header (asserted). Every bit pattern parses.
CmaHeader read_cma_header(std::span<const std::uint8_t> bytes);

}  // namespace simverbs::rdma_cm
