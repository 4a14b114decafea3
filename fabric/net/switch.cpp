#include "fabric/net/switch.hpp"

#include <utility>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/network_services.hpp"

namespace fabric {

Switch::Switch(NodeId id, std::string name, std::uint16_t port_count,
               const NetworkServices& services)
    : Node(id, std::move(name), NodeKind::kSwitch, port_count, services), services_(services) {}

// The forwarding delay is no event: the frame joins the outgoing queue now, to start no earlier
// than the delay allows.
void Switch::receive(Port& port, FramePtr frame) {
    const std::uint16_t number = route(frame->dlid);
    if (number == 0) {
        port.drop(std::move(frame), DropReason::kNoConsumer);
        return;
    }
    Port* const out = port_or_null(number);
    if (out == nullptr) {
        port.drop(std::move(frame), DropReason::kNoRoute);
        return;
    }
    if (out == &port) {
        port.drop(std::move(frame), DropReason::kBackToSender);
        return;
    }
    out->send_at(std::move(frame), services_.loop.now() + forwarding_delay_);
}

// Nobody on a switch listens; the subnet manager hears of links from the network.
void Switch::port_changed(Port& /*port*/, PortEvent /*event*/) {}

}  // namespace fabric
