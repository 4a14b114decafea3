// The address of a datagram in the headers of its frame: written for the way out, read on arrival.
#pragma once

#include <cstdint>
#include <optional>

#include "fabric/mad/agent.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

// Writes addresses, keys, lane and lengths of a frame that leaves by a port with these attributes
// and has its ManagementHeader already.
void address_datagram(Frame& frame, const PortAttributes& own, const DatagramAddress& to);

// Returns the sender of a frame that came in by a port with these attributes, as an answer
// addresses it.
DatagramAddress sender_of(const Frame& frame, const PortAttributes& own);

// Returns the place of a P_Key of the same partition; nothing: the port has none.
std::optional<std::uint16_t> index_of_pkey(const PortAttributes& own, std::uint16_t pkey);

}  // namespace fabric
