// Memory on the device, which a consumer reaches by copying and by keys of regions in it.
#pragma once

#include <cstdint>

#include "simverbs/hca/client.hpp"

namespace simverbs {

struct DeviceMemory {
    DeviceMemory(Client& client, const RingMemory& memory) : owner(client), ring(memory) {}
    ~DeviceMemory() { owner.release_ring(ring); }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    Client& owner;
    RingMemory ring;            // mapped by driver and device, like a BAR
    std::uint32_t regions = 0;  // in it
};

}  // namespace simverbs
