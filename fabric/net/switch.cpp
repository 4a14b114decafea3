#include "fabric/net/switch.hpp"

#include <algorithm>
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
    if (is_ethernet_) {
        receive_ethernet(port, std::move(frame));
        return;
    }
    if (frame->is_management && frame->dlid == kPermissiveLid) {
        receive_management(port, std::move(frame));
        return;
    }
    const std::uint16_t number = route(frame->dlid);
    if (number == 0) {
        if (frame->is_management) {
            receive_management(port, std::move(frame));
            return;
        }
        port.drop(std::move(frame), DropReason::kNoConsumer);
        return;
    }
    forward(port, std::move(frame), number);
}

void Switch::forward(Port& port, FramePtr frame, std::uint16_t number) {
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

void Switch::set_route(Lid lid, std::uint16_t port) {
    if (lid.value() >= table_.size()) {
        table_.resize(lid.value() + 1U, kNoRoute);
    }
    table_[lid.value()] = port;
}

void Switch::set_stations(std::vector<Station> stations) {
    stations_ = std::move(stations);
    is_ethernet_ = true;
}

void Switch::receive_ethernet(Port& port, FramePtr frame) {
    const MacAddress& to = frame->destination_mac;
    const auto station =
        std::lower_bound(stations_.begin(), stations_.end(), to,
                         [](const Station& one, const MacAddress& mac) { return one.mac < mac; });
    if (to.is_group() || station == stations_.end() || station->mac != to) {
        flood(port, std::move(frame));
        return;
    }
    forward(port, std::move(frame), station->port);
}

// Ports that are down are passed over: nothing was meant for them.
void Switch::flood(const Port& port, FramePtr frame) {
    for (std::uint16_t number = 1; number <= port_count(); ++number) {
        Port* const out = port_or_null(number);
        if (out != &port && out->state() == PortState::kActive) {
            out->send_at(frame->pool->copy(*frame), services_.loop.now() + forwarding_delay_);
        }
    }
}

// Nobody on a switch listens; the subnet manager hears of links from the network.
void Switch::port_changed(Port& /*port*/, PortEvent /*event*/) {}

}  // namespace fabric
