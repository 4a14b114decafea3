// Why a frame did not arrive. Each reason is counted at the port that dropped and traced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fabric {

enum class DropReason : std::uint8_t {
    kPortNotActive,  // the port that sends or receives is not in ACTIVE
    kPeerNotActive,  // the port at the other end is not in ACTIVE
    kExceedsMtu,     // more payload than the active MTU (IBA 7.7.8)
    kLinkDown,       // in flight when its link went down
    kFault,          // an injected fault took it
    kNoRoute,        // the switch has no entry for the DLID
    kBackToSender,   // the route points at the port it came from
    kNoConsumer,     // nothing at the destination takes frames
    kTeardown,       // the network was destroyed with the frame in flight
};
inline constexpr std::size_t kDropReasonCount = static_cast<std::size_t>(DropReason::kTeardown) + 1;

constexpr std::string_view to_string(DropReason reason) {
    switch (reason) {
        case DropReason::kPortNotActive:
            return "port_not_active";
        case DropReason::kPeerNotActive:
            return "peer_not_active";
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
