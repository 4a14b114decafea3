// How frames are addressed: what an address vector becomes in the headers that the fabric reads,
// and whether a frame came by the path that a connected queue pair expects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fabric/net/frame.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/transport/qp_attributes.hpp"

namespace simverbs {

class Hca;

// Checks a path against the port that it names and completes it: on Ethernet by the destination's
// MAC address. Cuts the flow label to its 20 bits. An errno, as Linux answers: EINVAL for a value
// out of range and, on Ethernet, without a GRH; ENODATA for an entry of the GID table that holds
// nothing; ETIMEDOUT when nobody has the address (at once: the seconds that a neighbour is waited
// for are not modelled). `why` gets the value that is wrong, and what would be valid.
int resolve_path(const Hca& hca, AddressVector& path, std::string& why);
// Cuts service level and rate to the bits that a device keeps which does not look at values.
void cut_path(AddressVector& path);

// Fills in where `frame` comes from and goes to: source node and queue pair, LIDs or MAC addresses,
// service level, GRH. `path` is resolved and names `port`.
void address_frame(fabric::Frame& frame, const fabric::Port& port, const AddressVector& path,
                   std::uint32_t source_qpn);
// The same for a frame that its sender made whole: `bytes` begin with the Ethernet header.
void address_raw_frame(fabric::Frame& frame, const fabric::Port& port,
                       std::span<const std::byte> bytes, std::uint32_t source_qpn);

// Returns true if `frame`, which arrived at `port`, was sent by the other end of `path`.
bool came_by(const fabric::Frame& frame, const fabric::Port& port, const AddressVector& path);
// Returns true if a port is who `frame` is for. Never of a group.
bool is_addressed_to(const fabric::Frame& frame, const fabric::Port& port);
// Returns true if what leaves by `port` comes back to it.
bool leads_back(const fabric::Port& port, const AddressVector& path);

}  // namespace simverbs
