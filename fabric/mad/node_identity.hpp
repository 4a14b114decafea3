// What a node says of itself in NodeInfo, NodeDescription, SwitchInfo and PortInfo, as far as the
// network does not know it.
#pragma once

#include <cstdint>
#include <string>

namespace fabric {

struct NodeIdentity {
    std::uint32_t vendor_id = 0;  // 24 bits
    std::uint16_t device_id = 0;
    std::uint32_t revision = 0;
    // NodeDescription is the node's name and, if this is not empty, a blank and this.
    std::string description;
    std::uint16_t pkey_entries = 128;
    std::uint8_t gid_entries = 8;
    // PortInfo:CapabilityMask (IBA 14.2.5.6) without IsSM.
    std::uint32_t capabilities = 0;
};

}  // namespace fabric
