// Frames as the bytes that a wire would carry, both CRCs included: for captures and tests.
//
// Two decoders know better whether this is right: Wireshark, and the sample packet of IBA 7.8.
// A frame check sequence of Ethernet is not built: captures have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/net/frame.hpp"
#include "fabric/net/link_layer.hpp"

namespace simverbs {

using Bytes = std::vector<std::byte>;

// Appends a frame with a Packet, as it is on a link of `layer`. `payload` is that of the packet, or
// less where it could not be read.
void append_packet(Bytes& out, const fabric::Frame& frame, fabric::LinkLayer layer,
                   std::span<const std::byte> payload);

// Appends a frame with a ManagementHeader, as it is on a link of `layer`.
void append_datagram(Bytes& out, const fabric::Frame& frame, fabric::LinkLayer layer,
                     std::span<const std::byte> datagram);

// Over the bytes given, without the fields that are masked (IBA 7.8.1). As on the wire when stored
// with the low byte first.
std::uint32_t invariant_crc(std::span<const std::byte> bytes);
// IBA 7.8.2; stored likewise.
std::uint16_t variant_crc(std::span<const std::byte> bytes);

}  // namespace simverbs
