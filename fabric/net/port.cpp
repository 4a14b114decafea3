#include "fabric/net/port.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/frame_observer.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/net_events.hpp"
#include "fabric/net/network_services.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

namespace {
// PortXmitData and PortRcvData count up to the ICRC, without the VCRC (IBA 16.1.3.5). On Ethernet
// the gap between frames is nobody's data.
constexpr std::uint32_t kVcrcBytes = 2;

std::uint32_t data_bytes(std::uint32_t wire_bytes, LinkLayer layer) {
    const std::uint32_t rest = layer == LinkLayer::kEthernet ? kFrameGapBytes : kVcrcBytes;
    return std::max(wire_bytes, rest) - rest;
}

std::uint64_t data_bytes(const Frame& frame, LinkLayer layer) {
    const std::uint32_t each = data_bytes(frame.wire_bytes, layer);
    return frame.packets == 1 ? each
                              : std::uint64_t{each} * (frame.packets - 1U) +
                                    data_bytes(frame.last_wire_bytes, layer);
}

bool is_multicast(const Frame& frame, LinkLayer layer) {
    return layer == LinkLayer::kEthernet ? frame.destination_mac.is_group()
                                         : is_multicast(frame.dlid);
}
}  // namespace

std::uint64_t PortCounters::total_discards() const {
    return std::accumulate(discards.begin(), discards.end(), std::uint64_t{0});
}

std::uint64_t PortCounters::xmit_discards() const {
    return discarded(DropReason::kPortNotActive) + discarded(DropReason::kPeerNotActive) +
           discarded(DropReason::kExceedsMtu) + discarded(DropReason::kLinkDown) +
           discarded(DropReason::kHeadOfQueueLifetime) + discarded(DropReason::kQueueFull);
}

// DLID mapping, VL mapping and looping errors (IBA 16.1.4.1).
std::uint64_t PortCounters::rcv_switch_relay_errors() const {
    return discarded(DropReason::kNoRoute) + discarded(DropReason::kNoLane) +
           discarded(DropReason::kBackToSender);
}

Port::Port(Node& node, PortNumber number, const NetworkServices& services)
    : node_(node), services_(services), number_(number) {
    attributes_.guid = make_guid(node.id(), number);
    attributes_.mac = make_mac(node.id(), number);
    attributes_.gids = {{make_gid(kDefaultSubnetPrefix, attributes_.guid), GidType::kInfiniband}};
    if (number == PortNumber{0}) {  // a switch's own port has no link to wait for
        state_ = PortState::kActive;
        physical_state_ = PhysicalState::kLinkUp;
    }
}

void Port::attach(Link& link, Port& peer, LinkDirection& out, LinkDirection& in) {
    SIMVERBS_ASSERT(link_ == nullptr, "port {} of {} has two links", number_.value(), node_.name());
    link_ = &link;
    peer_ = &peer;
    out_ = &out;
    in_ = &in;
}

void Port::send(FramePtr frame) {
    if (!assign_lane(*frame, 0)) [[unlikely]] {
        drop(std::move(frame), DropReason::kNoLane);
        return;
    }
    send_at(std::move(frame), services_.loop.now());
}

// IBA 7.6.6: lane 15, and one that is not in operation, discard.
bool Port::look_up_lane(Frame& frame, std::uint16_t from) const {
    const std::vector<SlToVl>& tables = attributes_.sl_to_vl;
    const SlToVl& table = from < tables.size() ? tables[from] : tables.front();
    frame.vl = table[frame.sl % kServiceLevels];
    return frame.vl < attributes_.operational_vls;
}

void Port::send_at(FramePtr frame, SimTime ready) {
    if (out_ == nullptr || !carries(*frame)) [[unlikely]] {
        drop(std::move(frame), DropReason::kPortNotActive);
        return;
    }
    if (!peer_->carries(*frame)) [[unlikely]] {
        drop(std::move(frame), DropReason::kPeerNotActive);
        return;
    }
    if (frame->payload_bytes > attributes_.link_mtu_bytes()) [[unlikely]] {
        drop(std::move(frame), DropReason::kExceedsMtu);
        return;
    }
    out_->transmit(std::move(frame), ready);
}

SimTime Port::transmitter_free_at() const {
    const SimTime now = services_.loop.now();
    return out_ == nullptr ? now : out_->free_at();
}

void Port::drop(FramePtr frame, DropReason reason) {
    while (frame->packets > 1) {
        drop(frame->pool->take_first(*frame), reason);
    }
    node_.release_buffer(*frame, services_.loop.now());
    ++counters_.discards[static_cast<std::size_t>(reason)];
    services_.bus.emit(services_.loop.now(),
                       FrameDropped{node_.id(), number_, reason, frame->source, frame->flow,
                                    frame->number, frame->slid, frame->dlid, frame->wire_bytes});
    if (services_.frame_observer != nullptr) [[unlikely]] {
        services_.frame_observer->dropped(*this, *frame, reason);
    }
}

bool Port::apply(PortTrigger trigger) {
    const PortTransition* const row = find_transition(state_, trigger);
    if (row == nullptr) {
        return false;
    }
    end_passages();
    state_ = row->to;
    if (trigger == PortTrigger::kLinkUp || trigger == PortTrigger::kCarrier) {
        physical_state_ = PhysicalState::kLinkUp;
    } else if (state_ == PortState::kDown) {
        physical_state_ = PhysicalState::kPolling;
        counters_.link_downed += trigger == PortTrigger::kLinkDown ? 1 : 0;
    }
    services_.bus.emit(services_.loop.now(),
                       PortStateChanged{node_.id(), number_, row->from, row->to, trigger});
    if (row->to == PortState::kActive) {
        raise(PortEvent::kPortActive);
    } else if (row->from == PortState::kActive) {
        raise(PortEvent::kPortError);
    }
    return true;
}

void Port::raise(PortEvent event) {
    services_.bus.emit(services_.loop.now(), PortEventRaised{node_.id(), number_, event});
    node_.port_changed(*this, event);
}

void Port::count_sent(const Frame& frame) {
    counters_.xmit_packets += frame.packets;
    counters_.xmit_data_bytes += data_bytes(frame, attributes_.link_layer);
    counters_.xmit_multicast_packets += is_multicast(frame, attributes_.link_layer) ? 1 : 0;
}

void Port::uncount_sent(const Frame& frame) {
    --counters_.xmit_packets;
    counters_.xmit_data_bytes -= data_bytes(frame, attributes_.link_layer);
    counters_.xmit_multicast_packets -= is_multicast(frame, attributes_.link_layer) ? 1 : 0;
}

void Port::count_received(const Frame& frame) {
    counters_.rcv_packets += frame.packets;
    counters_.rcv_data_bytes += data_bytes(frame, attributes_.link_layer);
    counters_.rcv_multicast_packets += is_multicast(frame, attributes_.link_layer) ? 1 : 0;
}

void Port::count_passed_in(std::uint32_t wire_bytes) {
    ++counters_.rcv_packets;
    counters_.rcv_data_bytes += data_bytes(wire_bytes, attributes_.link_layer);
}

void Port::count_passed_out(std::uint32_t wire_bytes) {
    ++counters_.xmit_packets;
    counters_.xmit_data_bytes += data_bytes(wire_bytes, attributes_.link_layer);
}

void Port::end_passages() const {
    for (LinkDirection* const direction : {in_, out_}) {
        if (direction != nullptr) {
            direction->end_passages();
        }
    }
    is_passed_ = false;
}

void Port::count_wait(SimDuration duration, Rate rate) {
    counters_.xmit_wait +=
        static_cast<std::uint64_t>(duration / rate.transmission_time(PortCounters::kWaitTickBytes));
}

}  // namespace fabric
