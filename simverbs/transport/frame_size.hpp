// How long a packet is on the wire of a port.
#pragma once

#include <cstdint>

#include "fabric/net/frame.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/model/wire_opcodes.hpp"

namespace simverbs {

// The lengths of an addressed frame: what counts against the MTU, what is on the wire.
void size_frame(fabric::Frame& frame, const fabric::Port& port, const WireOpcode& operation,
                std::uint32_t payload_bytes);

}  // namespace simverbs
