#include "fabric/net/port.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/net_events.hpp"
#include "fabric/net/network_services.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

namespace {
// PortXmitData and PortRcvData count up to the ICRC, without the VCRC (IBA 16.1.3.5). On Ethernet
// the gap between frames is nobody's data.
constexpr std::uint32_t kVcrcBytes = 2;

std::uint64_t data_words(const Frame& frame, LinkLayer layer) {
    const std::uint32_t rest = layer == LinkLayer::kEthernet ? kFrameGapBytes : kVcrcBytes;
    return (std::max(frame.wire_bytes, rest) - rest) / 4;
}
}  // namespace

std::uint64_t PortCounters::total_discards() const {
    return std::accumulate(discards.begin(), discards.end(), std::uint64_t{0});
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

void Port::attach(Link& link, Port& peer, LinkDirection& out) {
    SIMVERBS_ASSERT(link_ == nullptr, "port {} of {} has two links", number_.value(), node_.name());
    link_ = &link;
    peer_ = &peer;
    out_ = &out;
}

void Port::send(FramePtr frame) {
    send_at(std::move(frame), services_.loop.now());
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
    return out_ == nullptr ? now : std::max(now, out_->busy_until_);
}

void Port::drop(FramePtr frame, DropReason reason) {
    ++counters_.discards[static_cast<std::size_t>(reason)];
    services_.bus.emit(services_.loop.now(),
                       FrameDropped{node_.id(), number_, reason, frame->source, frame->flow,
                                    frame->slid, frame->dlid, frame->wire_bytes});
}

bool Port::apply(PortTrigger trigger) {
    const PortTransition* const row = find_transition(state_, trigger);
    if (row == nullptr) {
        return false;
    }
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
    ++counters_.xmit_packets;
    counters_.xmit_data_words += data_words(frame, attributes_.link_layer);
}

void Port::count_received(const Frame& frame) {
    ++counters_.rcv_packets;
    counters_.rcv_data_words += data_words(frame, attributes_.link_layer);
}

}  // namespace fabric
