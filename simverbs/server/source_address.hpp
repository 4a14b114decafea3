// The addresses of a host, and that from which its sockets reach another host of the fabric, for
// the library that programs preload.
#pragma once

#include "simverbs/protocol/device_protocol.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

// Nothing here believes the request.
[[nodiscard]] SourceAddressReply source_address(Simulation& simulation,
                                                const DeviceRequest& request);
[[nodiscard]] HostAddressesReply host_addresses(Simulation& simulation,
                                                const DeviceRequest& request);

}  // namespace simverbs
