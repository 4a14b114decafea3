// Why a frame did not arrive. Each reason is counted at the port that dropped and traced.
// Their numbers are in digests of traces: a new one comes last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fabric {

enum class DropReason : std::uint8_t {
    kPortNotActive,        // the port that sends is not in ACTIVE
    kPeerNotActive,        // the port at the other end is not in ACTIVE
    kArrivedInactive,      // the port that it arrived at is not in ACTIVE
    kExceedsMtu,           // more payload than the active MTU (IBA 7.7.8)
    kLinkDown,             // on a link that went down, or waiting for it
    kHeadOfQueueLifetime,  // waited in a switch, first in its lane, longer than it may
    kQueueFull,            // an Ethernet switch has no room for more of its priority
    kFault,                // an injected fault took it
    kNoRoute,              // the switch has no entry for the DLID
    kNoLane,               // its service level leads to no lane of the outgoing port
    kBackToSender,         // the route points at the port it came from
    kPartitionIn,          // not of a partition of the switch port that it arrived at
    kPartitionOut,         // not of a partition of the switch port that it would leave by
    kNoConsumer,           // nothing at the destination takes frames
    kTeardown,             // the network was destroyed with the frame in flight
    kVlan,                 // its VLAN does not pass the switch port that it would leave by
};
inline constexpr std::size_t kDropReasonCount = static_cast<std::size_t>(DropReason::kVlan) + 1;

constexpr std::string_view to_string(DropReason reason) {
    switch (reason) {
        case DropReason::kPortNotActive:
            return "port_not_active";
        case DropReason::kPeerNotActive:
            return "peer_not_active";
        case DropReason::kArrivedInactive:
            return "arrived_inactive";
        case DropReason::kHeadOfQueueLifetime:
            return "head_of_queue_lifetime";
        case DropReason::kQueueFull:
            return "queue_full";
        case DropReason::kNoLane:
            return "no_lane";
        case DropReason::kPartitionIn:
            return "partition_in";
        case DropReason::kPartitionOut:
            return "partition_out";
        case DropReason::kVlan:
            return "vlan";
        case DropReason::kExceedsMtu:
            return "exceeds_mtu";
        case DropReason::kLinkDown:
            return "link_down";
        case DropReason::kFault:
            return "fault";
        case DropReason::kNoRoute:
            return "no_route";
        case DropReason::kBackToSender:
            return "back_to_sender";
        case DropReason::kNoConsumer:
            return "no_consumer";
        case DropReason::kTeardown:
            return "teardown";
    }
    return "?";
}

}  // namespace fabric
