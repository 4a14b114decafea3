// The address of a datagram in the headers of its frame: written for the way out, read on arrival.
#pragma once

#include <cstdint>
#include <optional>

#include "fabric/mad/agent.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

// Writes addresses, keys, lane and lengths of a frame that leaves by an InfiniBand port with these
// attributes and has its ManagementHeader already.
void address_by_lid(Frame& frame, const PortAttributes& own, const DatagramAddress& to);

// The same on Ethernet: the entry of the GID table that the global address names, which is there,
// selects RoCE v1 or v2 and the VLAN. `destination` is the MAC address of that GID.
void address_by_gid(Frame& frame, const PortAttributes& own, const DatagramAddress& to,
                    const MacAddress& destination);

// Returns true if a frame on Ethernet is for a port with these attributes: its MAC address, and one
// of its GIDs in the frame's VLAN for the frame's version of RoCE.
bool is_for_gid_of(const PortAttributes& own, const Frame& frame);

// Returns the sender of a frame that came in by a port with these attributes, as an answer
// addresses it.
DatagramAddress sender_of(const Frame& frame, const PortAttributes& own);

// Returns the place of a P_Key of the same partition; nothing: the port has none.
std::optional<std::uint16_t> index_of_pkey(const PortAttributes& own, std::uint16_t pkey);

}  // namespace fabric
