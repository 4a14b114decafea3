// Reacts to marks of congestion for a queue pair (RoCE v2).
#include "simverbs/hca/congestion.hpp"

#include <utility>

#include "fabric/net/link.hpp"

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/transport/frame_size.hpp"

namespace simverbs {

Congestion& QueuePair::congestion() {
    if (congestion_ == nullptr) {
        Effects& effects = *this;
        congestion_ = std::make_unique<Congestion>(effects);
        if (engine_ != nullptr) {
            engine_->set_rate(congestion_->reaction);
        }
    }
    return *congestion_;
}

// IBA A17.9.3: a packet of its own, with no answer and no PSN; one in a while, however many packets
// were marked.
void QueuePair::congestion_seen() {
    count(HwCounter::kNpEcnMarkedRocePackets);
    Congestion& state = congestion();
    const fabric::SimTime now = hca_.loop().now();
    if (now < state.next_notification) {
        return;
    }
    state.next_notification = now + kDcqcn.notification_gap;
    Packet packet;
    packet.opcode = kCnpOpcode;
    packet.dest_qpn = attributes_.dest_qpn;
    packet.source_qpn = attributes_.qpn;
    fabric::FramePtr frame = make_frame(packet, attributes_.path);
    size_frame(*frame, hca_.port(attributes_.port), packet.operation(), kCnpPayloadBytes);
    count(HwCounter::kNpCnpSent);
    put_on_wire(std::move(frame), packet);
}

void QueuePair::congestion_notified() {
    if (!hca_.personality().reacts_to_congestion || attributes_.service == Service::kRawPacket) {
        return;
    }
    const fabric::Port& port = hca_.port(attributes_.port);
    count(HwCounter::kRpCnpHandled);
    congestion().reaction.notified(port.link()->rate().bits_per_second());
    hca_.trace(RateReduced{hca_.node(), attributes_.qpn, congestion().reaction.rate()});
}

std::uint64_t QueuePair::congestion_rate() const {
    return congestion_ == nullptr ? 0 : congestion_->reaction.rate();
}

}  // namespace simverbs
