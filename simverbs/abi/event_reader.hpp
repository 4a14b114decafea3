// Taking an event from a descriptor as its blocking mode asks, while time goes on.
#pragma once

#include "simverbs/abi/objects.hpp"
#include "simverbs/hca/event_pipe.hpp"

namespace simverbs::abi {

// False with errno set: EAGAIN when there is none and the descriptor is O_NONBLOCK. `use`: that of
// the channel that the descriptor belongs to.
bool read_event(Context& context, int descriptor, ChannelUse& use, EventMessage& message);

}  // namespace simverbs::abi
