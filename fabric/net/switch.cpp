#include "fabric/net/switch.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/hash.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/network_services.hpp"
#include "fabric/net/pkey.hpp"

namespace fabric {

namespace {

bool passes(const Port& port, std::uint16_t vlan) {
    const auto& vlans = port.attributes().vlans;
    return vlan == 0 || !vlans || std::binary_search(vlans->begin(), vlans->end(), vlan);
}

}  // namespace

Switch::Switch(NodeId id, std::string name, std::uint16_t port_count, bool cuts_through,
               const NetworkServices& services)
    : Node(id, std::move(name), NodeKind::kSwitch, port_count, services),
      services_(services),
      cuts_through_(cuts_through) {}

// The forwarding delay is no event: the frame joins the outgoing queue now, to start no earlier
// than the delay allows.
[[gnu::flatten]] void Switch::receive(Port& port, FramePtr frame) {
    if (is_ethernet_) {
        receive_ethernet(port, std::move(frame));
        return;
    }
    // The table of the port is that of the host behind it.
    if (port.attributes().enforces_partitions_in && frame->vl != kManagementVl &&
        !may_send(port.attributes().pkeys, frame->pkey)) [[unlikely]] {
        port.drop(std::move(frame), DropReason::kPartitionIn);
        return;
    }
    const std::uint16_t number = route(frame->dlid);
    if (is_multicast(frame->dlid)) [[unlikely]] {
        forward_to_group(port, std::move(frame));
    } else if (number == 0 || frame->dlid == kPermissiveLid) [[unlikely]] {
        consume(port, std::move(frame));
    } else {
        forward(port, std::move(frame), number);
    }
}

// Takes a frame for the switch itself.
void Switch::consume(Port& port, FramePtr frame) {
    if (frame->is_management) {
        release_buffer(*frame, services_.loop.now());
        receive_management(port, std::move(frame));
    } else {
        const auto why =
            frame->dlid == kPermissiveLid ? DropReason::kNoRoute : DropReason::kNoConsumer;
        port.drop(std::move(frame), why);
    }
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
    send_out(port, std::move(frame), *out);
}

void Switch::send_out(Port& port, FramePtr frame, Port& out) {
    if (out.attributes().enforces_partitions_out && frame->vl != kManagementVl &&
        !admits(out.attributes().pkeys, frame->pkey)) [[unlikely]] {
        out.drop(std::move(frame), DropReason::kPartitionOut);
        return;
    }
    if (is_ethernet_ && !passes(out, frame->vlan)) [[unlikely]] {
        out.drop(std::move(frame), DropReason::kVlan);
        return;
    }
    if (!out.assign_lane(*frame, port.number().value())) [[unlikely]] {
        port.drop(std::move(frame), DropReason::kNoLane);
        return;
    }
    const SimTime ready = ready_at(port, *frame, out);
    out.send_at(std::move(frame), ready);
}

// A frame that was cut through is here with its head alone; to a faster way out it goes when it is
// in as a whole.
SimTime Switch::ready_at(const Port& port, const Frame& frame, const Port& out) const {
    const SimTime ready = services_.loop.now() + forwarding_delay_;
    const bool same_rate = port.attributes().width == out.attributes().width &&
                           port.attributes().speed == out.attributes().speed;
    if (!cuts_through_ || same_rate || frame.is_management || out.link() == nullptr) [[likely]] {
        return ready;
    }
    const Rate rate = port.link()->rate();
    if (out.link()->rate().bits_per_second() <= rate.bits_per_second()) {
        return ready;
    }
    return ready + rate.transmission_time(frame.wire_bytes) -
           rate.transmission_time(std::min(frame.wire_bytes, kCutThroughBytes));
}

// Each way out gets a frame of its own; the one that is likely to leave last holds the buffer of
// the port that it came in by.
template <class Outs>
void Switch::replicate(Port& port, FramePtr frame, const Outs& for_each_out) {
    Port* last = nullptr;
    for_each_out([&last](Port& out) {
        if (last == nullptr || last->transmitter_free_at() <= out.transmitter_free_at()) {
            last = &out;
        }
    });
    if (last == nullptr) {
        release_buffer(*frame, services_.loop.now());
        return;
    }
    for_each_out([this, &port, &frame, last](Port& out) {
        if (&out != last) {
            FramePtr copy = frame->pool->copy(*frame);
            copy->ingress = 0;
            send_out(port, std::move(copy), out);
        }
    });
    send_out(port, std::move(frame), *last);
}

// Ports that are down are passed over: their members are away.
void Switch::forward_to_group(Port& port, FramePtr frame) {
    const auto group = multicast_.find(frame->dlid);
    if (group == multicast_.end()) {
        port.drop(std::move(frame), DropReason::kNoRoute);
        return;
    }
    replicate(port, std::move(frame), [this, &port, group](auto&& visit) {
        for (const std::uint16_t number : group->second) {
            Port* const out = number == 0 ? nullptr : port_or_null(number);
            if (out != nullptr && out != &port && out->state() == PortState::kActive) {
                visit(*out);
            }
        }
    });
}

void Switch::set_route(Lid lid, std::uint16_t port) {
    end_passages();
    if (lid.value() >= table_.size()) {
        table_.resize(lid.value() + 1U, kNoRoute);
    }
    table_[lid.value()] = port;
}

void Switch::set_ethernet_routes(EthernetRoutes routes) {
    end_passages();
    ethernet_ = std::move(routes);
    is_ethernet_ = true;
}

[[gnu::flatten]] void Switch::receive_ethernet(Port& port, FramePtr frame) {
    const MacAddress& to = frame->destination_mac;
    const Stations& stations = *ethernet_.stations;
    const auto station =
        std::lower_bound(stations.begin(), stations.end(), to,
                         [](const Station& one, const MacAddress& mac) { return one.mac < mac; });
    if (to.is_group() || station == stations.end() || station->mac != to) {
        flood(port, std::move(frame));
        return;
    }
    const std::uint16_t out = route_to(*station, *frame);
    forward(port, std::move(frame), out);
}

// Selects one of the equal-cost ports by a hash of the flow. The hash includes the number of the
// switch: otherwise all flows that the first switch sends one way would also leave the second one
// through the same port.
std::uint16_t Switch::route_to(const Station& station, const Frame& frame) const {
    if (station.switch_index == ethernet_.own_index) {
        return station.port;
    }
    const std::vector<std::uint16_t>& ports = ethernet_.ports_to[station.switch_index];
    if (ports.empty()) {
        return kNoRoute;
    }
    if (ports.size() == 1) {
        return ports[0];
    }
    WordsHash hash;
    hash.add(id().value());
    hash.add(std::uint64_t{frame.source.value()} << 32 | frame.flow);
    hash.add(std::uint64_t{station.switch_index} << 16 | station.port);
    return ports[hash.value() % ports.size()];
}

// Ports that are down or not in the frame's VLAN are passed over: nothing was meant for them.
void Switch::flood(Port& port, FramePtr frame) {
    const std::uint16_t vlan = frame->vlan;
    replicate(port, std::move(frame), [this, &port, vlan](auto&& visit) {
        for (const std::uint16_t number : ethernet_.tree_ports) {
            Port* const out = port_or_null(number);
            if (out != &port && out->state() == PortState::kActive && passes(*out, vlan)) {
                visit(*out);
            }
        }
    });
}

Port* Switch::way_of_train(Port& port, Frame& train) {
    if (is_ethernet_ || !cuts_through_ || train.is_management || is_multicast(train.dlid) ||
        train.dlid == kPermissiveLid) {
        return nullptr;
    }
    const std::uint16_t number = route(train.dlid);
    Port* const out = number == 0 ? nullptr : port_or_null(number);
    if (out == nullptr || out == &port || out->link() == nullptr ||
        out->link()->rate() != port.link()->rate()) {
        return nullptr;
    }
    const PortAttributes& from = port.attributes();
    const PortAttributes& to = out->attributes();
    if (from.width != to.width || from.speed != to.speed ||
        (from.enforces_partitions_in && !may_send(from.pkeys, train.pkey)) ||
        (to.enforces_partitions_out && !admits(to.pkeys, train.pkey))) {
        return nullptr;
    }
    const std::uint8_t lane = train.vl;
    const bool stays = out->assign_lane(train, port.number().value()) && train.vl == lane;
    train.vl = lane;
    return stays ? out : nullptr;
}

void Switch::end_passages() {
    if (!trains_pass_) {
        return;
    }
    for (std::uint16_t number = 1; number <= port_count(); ++number) {
        port(PortNumber(number)).end_passage();
    }
    trains_pass_ = false;
}

// Nobody on a switch listens; the subnet manager hears of links from the network.
void Switch::port_changed(Port& /*port*/, PortEvent /*event*/) {}

}  // namespace fabric
