// The frames that a queue pair sends, and the trains that it takes.
#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "fabric/net/link_direction.hpp"

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/packet_train.hpp"
#include "simverbs/hca/placement.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/transport/frame_size.hpp"
#include "simverbs/wire/ethernet_headers.hpp"

namespace simverbs {

// A host without power says nothing: no refusal either of what its memory could not take.
void QueuePair::transmit(const Packet& packet) {
    if (context_->client().memory().is_gone()) {
        return;
    }
    put_on_wire(make_frame(packet, attributes_.path), packet);
}

// Packets that loop back are not on a link.
std::uint16_t QueuePair::longest_train() const {
    const fabric::Port& port = hca_.port(attributes_.port);
    const bool may_be = port.outgoing() != nullptr && port.outgoing()->takes_trains() &&
                        !leads_back(port, attributes_.path);
    return may_be ? std::numeric_limits<std::uint16_t>::max() : std::uint16_t{1};
}

// An XRC target answers out of the memory of whoever owns the shared queue that was named.
CopyOutcome QueuePair::transmit_snapshot(const Packet& packet) {
    Packet from_here = packet;
    if (receives_.xrc_domain() != nullptr) {
        from_here.payload.space = &memory(packet.srq);
    }
    fabric::FramePtr frame;
    const CopyOutcome outcome = make_snapshot_frame(from_here, attributes_.path, frame);
    if (outcome == CopyOutcome::kCopied) {
        put_on_wire(std::move(frame), from_here);
    }
    return outcome;
}

// READ responses between which others are trains; single packets would be too many at a time.
bool QueuePair::may_borrow(const Packet& packet) const {
    const WireOpcode& operation = packet.operation();
    return operation.kind == MessageKind::kReadResponse &&
           !(operation.starts_message && operation.ends_message) && longest_train() > 1;
}

CopyOutcome QueuePair::make_snapshot_frame(const Packet& packet, const AddressVector& path,
                                           fabric::FramePtr& frame) {
    if (packet.payload.length == 0) {
        frame = make_frame(packet, path);
        return CopyOutcome::kCopied;
    }
    Packet copy = packet;
    BorrowedBytes* const bytes = may_borrow(packet) ? hca_.borrow(packet.payload) : nullptr;
    if (bytes != nullptr) {
        copy.payload = bytes->payload();
        frame = make_frame(copy, path);
        frame->cargo = bytes;
        return CopyOutcome::kCopied;
    }
    if (packet.payload.space != nullptr) {
        hca_.take_borrowed_of(*packet.payload.space);
    }
    Snapshot& snapshot =
        packet.packets > 1 ? hca_.train_snapshots().take() : hca_.snapshots().take();
    const CopyOutcome outcome = gather_payload(packet.payload, snapshot.bytes());
    if (outcome != CopyOutcome::kCopied) {
        snapshot.release();
        return outcome;
    }
    copy.payload = snapshot.payload(hca_.own_memory(), packet.payload.length);
    frame = make_frame(copy, path);
    frame->cargo = &snapshot;
    return outcome;
}

FrameVerdict QueuePair::transmit_frame(const Payload& payload, bool fill) {
    const fabric::Port& port = hca_.port(attributes_.port);
    const std::uint32_t mtu = port.attributes().link_mtu_bytes();
    if (payload.length < fabric::kEthernetHeaderBytes ||
        payload.length > std::min<std::uint32_t>(kMaxEthernetHeaderBytes + mtu, Snapshot::kBytes)) {
        return FrameVerdict::kWrongLength;
    }
    Snapshot& snapshot = hca_.snapshots().take();
    fabric::FramePtr frame = hca_.frames().make();
    frame->cargo = &snapshot;
    if (gather_payload(payload, snapshot.bytes()) != CopyOutcome::kCopied) {
        return FrameVerdict::kUnreadable;
    }
    const std::span<std::byte> gathered(snapshot.bytes(), payload.length);
    if (payload.length > ethernet_header_bytes(gathered) + mtu) {
        return FrameVerdict::kWrongLength;
    }
    const std::uint32_t length = std::max(payload.length, fabric::kShortestFrameBytes);
    const std::span<std::byte> bytes(snapshot.bytes(), length);
    std::ranges::fill(bytes.subspan(payload.length), std::byte{0});
    if (fill) {
        fill_checksums(bytes);
    }
    if (!hca_.egress_flows().empty() &&
        !hca_.egress_flows().lets_out(attributes_.port, parse_frame(bytes), length)) {
        return FrameVerdict::kSent;  // it goes no further; the work request has been carried out
    }
    frame->transport_as<Packet>() = Packet{};
    frame->transport_as<Packet>().payload = snapshot.payload(hca_.own_memory(), length);
    frame->number = ++frames_made_;
    address_raw_frame(*frame, port, bytes, attributes_.qpn);
    if (frame->destination_mac.is_group()) {
        loop_back_group_frame(*frame, bytes);
    }
    hca_.send(attributes_.port, std::move(frame));
    return FrameVerdict::kSent;
}

// The flow rules of the sender's own device see a group's frame, too, as with mlx5. Nothing in the
// frame says who sent it, so the sender alone decides.
void QueuePair::loop_back_group_frame(const fabric::Frame& sent, std::span<const std::byte> bytes) {
    if (blocks_own_multicast_ || !hca_.personality().multicast_loopback || hca_.flows().empty()) {
        return;
    }
    fabric::FramePtr frame = hca_.frames().make();
    frame->cargo = sent.cargo;
    frame->cargo->retain();
    frame->transport_as<Packet>() = sent.transport_as<Packet>();
    frame->number = ++frames_made_;
    address_raw_frame(*frame, hca_.port(attributes_.port), bytes, attributes_.qpn);
    hca_.loop_back(attributes_.port, std::move(frame));
}

fabric::FramePtr QueuePair::make_frame(const Packet& packet, const AddressVector& path) {
    const fabric::Port& port = hca_.port(attributes_.port);
    fabric::FramePtr frame = hca_.frames().make();
    frame->number = ++frames_made_;
    address_frame(*frame, port, path, attributes_.qpn);
    if (packet.packets > 1) {
        size_train(*frame, port, packet);
    } else {
        size_frame(*frame, port, packet.operation(), packet.payload.length);
    }
    if (frame->over_udp && packet.payload.length > 0 && properties(attributes_.service).connected &&
        hca_.personality().reacts_to_congestion) {
        frame->ecn = fabric::Ecn::kCapable0;
    }
    frame->pkey = port.attributes().pkeys[attributes_.pkey_index];
    Packet& slot = frame->transport_as<Packet>();
    slot = packet;
    slot.pkey = frame->pkey;
    slot.migration_request = migration_state() == MigrationState::kMigrated;
    return frame;
}

void QueuePair::put_on_wire(fabric::FramePtr frame, const Packet& packet) {
    if (hca_.traces(Category::kPacket)) {
        hca_.trace(
            PacketSent{hca_.node(), attributes_.qpn, frame->number, packet.dest_qpn, packet.opcode,
                       packet.operation().operation, packet.psn.value(), packet.payload.length,
                       packet.ack_request, packet.attempt > 1 && !packet.operation().response(),
                       packet.syndrome.encoded(), packet.msn, packet.rkey, packet.dma_length});
    }
    hca_.send(attributes_.port, std::move(frame));
}

// A port that is down takes no time to lose a packet: never in the instant in which this may just
// have expired.
void QueuePair::arm_when_transmitter_free(EngineTimer which, fabric::SimDuration at_least) {
    const fabric::SimTime free_at =
        properties(attributes_.service).connected
            ? hca_.transmitter_free_at(attributes_.port, attributes_.path)
            : hca_.transmitters_free_at(attributes_.port);
    timer(which).arm(
        std::max(free_at, hca_.loop().now() + std::max(at_least, fabric::SimDuration(1))));
}

// To send more of a READ response changes nothing that a deferred train could depend on, and
// depends on nothing but the memory that it reads. Of an XRC target that is another's.
bool QueuePair::tells_followers(const fabric::Event& event) const {
    const ServiceProperties& service = properties(attributes_.service);
    return static_cast<EngineTimer>(event.argument) == EngineTimer::kPacing && service.connected &&
           !service.srq_from_packet;
}

bool QueuePair::take_ahead(const fabric::Port& port, const fabric::Frame& train) {
    return receives_packets(attributes_.state) && comes_by_its_path(port, train) &&
           engine().take_ahead(train.transport_as<Packet>());
}

// A timer that fires before the last packet sees what the earlier ones have done to it.
bool QueuePair::would_take(const fabric::Port& port, const fabric::Frame& train,
                           fabric::SimTime last, std::span<const MemorySpan>& to) {
    const fabric::Timer* const timer = find_timer(EngineTimer::kAcknowledge);
    return (timer == nullptr || !timer->armed() || timer->deadline() > last) &&
           receives_packets(attributes_.state) && comes_by_its_path(port, train) &&
           engine().would_take(train.transport_as<Packet>(), to);
}

}  // namespace simverbs
