// Packets in a row as one frame.
#pragma once

#include <cstdint>

#include "fabric/net/frame.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/wire/packet.hpp"

namespace simverbs {

// The lengths of an addressed frame that stands for `train`, and who cuts it; see size_frame().
void size_train(fabric::Frame& frame, const fabric::Port& port, const Packet& train);

}  // namespace simverbs
