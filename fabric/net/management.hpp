// Management datagrams as frames: what stands for BTH and DETH in the transport slot, and who takes
// them at a node. The datagram itself, 256 bytes, is the frame's cargo.
#pragma once

#include <cstdint>

#include "fabric/net/frame.hpp"

namespace fabric {

class Port;

// Queue pair 0 takes subnet management packets, 1 all other classes (IBA 13.5.1).
inline constexpr std::uint32_t kSubnetManagementQp = 0;
inline constexpr std::uint32_t kGeneralServicesQp = 1;

// The lane of subnet management packets: no flow control, ahead of all others, open from INIT on
// (IBA 7.6.2).
inline constexpr std::uint8_t kManagementVl = 15;

struct ManagementHeader {
    std::uint32_t source_qp;
    std::uint32_t destination_qp;
    std::uint32_t qkey;
};

// The agents of a node.
class ManagementListener {
  public:
    // `port` is the one that it came in by: on a switch an external one.
    virtual void management_arrived(Port& port, FramePtr frame) = 0;

  protected:
    ~ManagementListener() = default;
};

}  // namespace fabric
