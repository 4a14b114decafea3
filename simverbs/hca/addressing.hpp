// How frames are addressed: what an address vector becomes in the headers that the fabric reads,
// and whether a frame came by the path that a connected queue pair expects.
#pragma once

#include <cstdint>

#include "fabric/net/frame.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/model/wire_opcodes.hpp"
#include "simverbs/transport/qp_attributes.hpp"

namespace simverbs {

class Hca;

// Checks a path against the port that it names and completes it. An errno: EINVAL for a value out
// of range, ENODATA for an entry of the GID table that holds nothing (as Linux answers).
int resolve_path(const Hca& hca, AddressVector& path);

// Fills in where `frame` comes from and goes to: source node and queue pair, LIDs, service level,
// GRH. `path` is resolved and leaves by `port`.
void address_frame(fabric::Frame& frame, const fabric::Port& port, const AddressVector& path,
                   std::uint32_t source_qpn);
// The lengths that follow from the addressing: what counts against the MTU, what is on the wire.
void size_frame(fabric::Frame& frame, const WireOpcode& operation, std::uint32_t payload_bytes);

// Whether `frame`, which arrived at `port`, was sent by the other end of `path`.
bool came_by(const fabric::Frame& frame, const AddressVector& path);
// Whether what leaves by `port` comes back to it.
bool leads_back(const fabric::Port& port, const AddressVector& path);
bool leads_back(const fabric::Port& port, const fabric::Frame& frame);

}  // namespace simverbs
