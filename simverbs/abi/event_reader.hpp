// Taking an event from a descriptor as its blocking mode asks, while time goes on.
#pragma once

#include <cstdint>

#include "simverbs/abi/objects.hpp"
#include "simverbs/hca/event_pipe.hpp"

namespace simverbs::abi {

// False with errno set: EAGAIN when there is none and the descriptor is O_NONBLOCK. `channel`: the
// number of a completion channel, or 0 for asynchronous events; `use`: that of the same channel.
bool read_event(Context& context, std::uint32_t channel, int descriptor, ChannelUse& use,
                EventMessage& message);

}  // namespace simverbs::abi
