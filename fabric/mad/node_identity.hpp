// The facts about a node in NodeInfo, SwitchInfo and PortInfo, as far as the network does not know
// them.
#pragma once

#include <cstdint>

namespace fabric {

struct NodeIdentity {
    std::uint32_t vendor_id = 0;  // 24 bits
    std::uint16_t device_id = 0;
    std::uint32_t revision = 0;
    std::uint16_t pkey_entries = 128;
    std::uint8_t gid_entries = 8;
    // PortInfo:CapabilityMask (IBA 14.2.5.6) without IsSM.
    std::uint32_t capabilities = 0;
};

}  // namespace fabric
