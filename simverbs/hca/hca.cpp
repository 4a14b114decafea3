#include "simverbs/hca/hca.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "fabric/core/hash.hpp"
#include "fabric/net/pkey.hpp"

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/placement.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/model/personalities.hpp"

namespace simverbs {
namespace {

AsyncEvent async_event(fabric::PortEvent event) {
    switch (event) {
        case fabric::PortEvent::kPortActive:
            return AsyncEvent::kPortActive;
        case fabric::PortEvent::kPortError:
            return AsyncEvent::kPortErr;
        case fabric::PortEvent::kLidChange:
            return AsyncEvent::kLidChange;
        case fabric::PortEvent::kSmChange:
            return AsyncEvent::kSmChange;
        case fabric::PortEvent::kPkeyChange:
            return AsyncEvent::kPkeyChange;
        case fabric::PortEvent::kGidChange:
            return AsyncEvent::kGidChange;
        case fabric::PortEvent::kSpeedChange:
            return AsyncEvent::kDeviceSpeedChange;
        case fabric::PortEvent::kClientReregister:
            break;
    }
    return AsyncEvent::kClientReregister;
}

// Returns a seed of the device's own, so that keys of two hosts differ.
std::optional<std::uint64_t> seed_of_keys(const Numbering& numbering, std::string_view host) {
    if (!numbering.key_seed) {
        return std::nullopt;
    }
    return fabric::mix_words(*numbering.key_seed, fabric::hash_name(host));
}

// A switch that floods brings a port what is meant for others.
bool is_for(const fabric::Port& port, const fabric::Frame& frame) {
    return port.attributes().link_layer == fabric::LinkLayer::kInfiniband ||
           frame.destination_mac.is_group() || frame.destination_mac == port.attributes().mac;
}

// A host has no interface in a VLAN that its link is not in.
bool is_of_its_vlans(const fabric::Port& port, const fabric::Frame& frame) {
    const fabric::PortAttributes& own = port.attributes();
    return own.link_layer == fabric::LinkLayer::kInfiniband || frame.vlan == 0 ||
           (own.vlans && std::binary_search(own.vlans->begin(), own.vlans->end(), frame.vlan));
}

bool has_ethernet(const fabric::EndNode& node) {
    for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
        if (node.port(fabric::PortNumber(number)).attributes().link_layer ==
            fabric::LinkLayer::kEthernet) {
            return true;
        }
    }
    return false;
}

}  // namespace

Hca::Hca(fabric::Network& network, fabric::EndNode& node, const Personality& personality,
         HcaCommons& commons)
    : network_(network),
      node_(node),
      personality_(variant_of(personality, has_ethernet(node))),
      commons_(commons),
      index_(commons.device_count++),
      keys_(first_number(1, index_), seed_of_keys(commons.numbering, node.name())),
      qps_(first_number(commons.numbering.first_qpn, index_)),
      srqs_(first_number(1, index_)),
      wqs_(first_number(1, index_)) {
    for (std::uint16_t number = 1; number <= node_.port_count(); ++number) {
        LoopbackListener& listener = *this;
        loopbacks_.push_back(std::make_unique<Loopback>(network_.loop(), port(number), listener));
    }
    hw_counters_.resize(node_.port_count());
    if (commons_.by_node.size() <= node_.id().value()) {
        commons_.by_node.resize(node_.id().value() + 1);
    }
    commons_.by_node[node_.id().value()] = this;
    node_.set_listener(this);
}

Hca::~Hca() {
    node_.set_listener(nullptr);
    commons_.by_node[node_.id().value()] = nullptr;
}

DeviceContext* Hca::open(Client& client) {
    std::uint32_t free = 1;
    for (const auto& [handle, context] : contexts_) {
        if (handle != free) {
            break;
        }
        ++free;
    }
    if (free > kMaxContexts) {
        return nullptr;
    }
    auto context = std::make_unique<DeviceContext>(*this, client, free);
    return contexts_.emplace(free, std::move(context)).first->second.get();
}

bool Hca::close(std::uint32_t context) {
    return contexts_.erase(context) != 0;
}

std::size_t Hca::queue_pair_count() const {
    std::size_t count = 0;
    for (const auto& [handle, context] : contexts_) {
        count += context->queue_pair_count();
    }
    return count;
}

DeviceContext* Hca::find_context(std::uint32_t handle) const {
    const auto found = contexts_.find(handle);
    return found == contexts_.end() ? nullptr : found->second.get();
}

void Hca::send(std::uint32_t number, fabric::FramePtr frame) {
    if (is_dead_ || (has_dead_contexts_ && is_of_dead_context(frame->flow))) [[unlikely]] {
        return;
    }
    if (is_addressed_to(*frame, port(number))) {
        loopbacks_[number - 1]->send(std::move(frame));
    } else {
        port(number).send(std::move(frame));
    }
}

fabric::SimTime Hca::transmitter_free_at(std::uint32_t number, const AddressVector& path) const {
    return leads_back(port(number), path) ? loopbacks_[number - 1]->free_at()
                                          : port(number).transmitter_free_at();
}

void Hca::frame_arrived(fabric::Port& port, fabric::FramePtr frame) {
    deliver(port, *frame);
}

void Hca::looped_back(fabric::Port& port, fabric::FramePtr frame) {
    deliver(port, *frame);
}

void Hca::loop_back(std::uint32_t number, fabric::FramePtr frame) {
    if (!is_dead_) {
        loopbacks_[number - 1]->send(std::move(frame));
    }
}

fabric::SimTime Hca::transmitters_free_at(std::uint32_t number) const {
    return std::max(loopbacks_[number - 1]->free_at(), port(number).transmitter_free_at());
}

void Hca::discard(const Packet& packet, PacketFate fate) {
    trace(PacketDiscarded{node(), packet.dest_qpn, packet.psn.value(), fate});
}

// IBA 7.8.1: an error of the port that finds it.
void Hca::discard_corrupted(fabric::Port& port, const Packet& packet) {
    if (port.attributes().link_layer == fabric::LinkLayer::kEthernet) {
        hw_counters(port.number().value()).count(HwCounter::kRxIcrcEncapsulated);
    } else {
        ++port.mutable_counters().rcv_errors;
    }
    discard(packet, PacketFate::kCrcWrong);
}

// Frames without a transport: rules say who takes them, whatever address they are for.
void Hca::steer(const fabric::Port& port, const fabric::Frame& frame) {
    commons_.borrowings.settle();  // what the frame brings may change them
    const Packet& packet = frame.transport_as<Packet>();
    const std::span<const std::byte> bytes(static_cast<const Snapshot*>(frame.cargo)->bytes(),
                                           packet.payload.length);
    ReceivedFrame received{packet.payload, bytes, checksums_hold(bytes), 0};
    arriving_ = &frame;
    const FrameHeaders headers = parse_frame(bytes);
    const bool taken =
        flows_.match(static_cast<std::uint8_t>(port.number().value()), headers,
                     packet.payload.length, [&received, &headers](const FlowRule& rule) {
                         received.flow_tag = rule.tag;
                         rule.qp->frame_arrived(received, headers);
                     });
    arriving_ = nullptr;
    if (!taken) {
        trace(PacketDiscarded{node(), 0, 0, PacketFate::kNoFlowRule});
    }
}

void Hca::deliver(fabric::Port& port, const fabric::Frame& frame) {
    if (is_dead_) [[unlikely]] {
        discard(frame.transport_as<Packet>(),
                has_power_ ? PacketFate::kDeviceDead : PacketFate::kNoPower);
        return;
    }
    if (frame.is_raw) {
        steer(port, frame);
        return;
    }
    const Packet& packet = frame.transport_as<Packet>();
    if (packet.corrupted_bits != 0) [[unlikely]] {
        discard_corrupted(port, packet);
        return;
    }
    if (!is_for(port, frame)) {
        discard(packet, PacketFate::kOtherStation);
        return;
    }
    if (!is_of_its_vlans(port, frame)) [[unlikely]] {
        discard(packet, PacketFate::kOtherVlan);
        return;
    }
    arriving_ = &frame;
    if (packet.dest_qpn == kMulticastQpn) {
        const auto members = frame.has_grh ? multicast_.members({frame.grh.dgid, frame.dlid})
                                           : std::span<QueuePair* const>();
        for (QueuePair* member : members) {
            const bool is_own = frame.source == node() && packet.source_qpn == member->qpn();
            if (!is_own || !member->blocks_own_multicast()) {
                deliver_to(*member, port, frame);
            }
        }
        if (members.empty()) {
            discard(packet, PacketFate::kNoQueuePair);
        }
    } else if (QueuePair* qp = qps_.find(packet.dest_qpn); qp != nullptr) {
        deliver_to(*qp, port, frame);
    } else {
        discard(packet, PacketFate::kNoQueuePair);
    }
    arriving_ = nullptr;
}

void Hca::deliver_to(QueuePair& qp, const fabric::Port& port, const fabric::Frame& frame) {
    const Packet& packet = frame.transport_as<Packet>();
    settle_for(qp, packet);
    if (has_dead_contexts_ && qp.context().is_dead()) [[unlikely]] {
        discard(packet,
                qp.context().is_abandoned() ? PacketFate::kNoQueuePair : PacketFate::kDeviceDead);
        return;
    }
    const QpAttributes& attributes = qp.attributes();
    if (!fabric::pkeys_match(packet.pkey, port.attributes().pkeys[attributes.pkey_index])) {
        ++bad_pkeys_;
        discard(packet, PacketFate::kPkeyMismatch);
        return;
    }
    const ServiceProperties& service = properties(attributes.service);
    if (packet.operation().kind == MessageKind::kCongestionNotification) {
        qp.congestion_notified();
        return;
    }
    if (packet.operation().transport != service.wire_transport) {
        discard(packet, PacketFate::kWrongService);
        return;
    }
    const bool has_peer = attributes.state != QpState::kReset && attributes.state != QpState::kInit;
    if (service.connected && has_peer && !qp.comes_by_its_path(port, frame)) {
        discard(packet, PacketFate::kOtherPeer);
        return;
    }
    if (frame.ecn == fabric::Ecn::kCongested && personality_.reacts_to_congestion &&
        service.connected && has_peer && attributes.state != QpState::kErr) [[unlikely]] {
        qp.congestion_seen();
    }
    qp.packet_arrived(packet);
}

// Returns nullptr for trains whose packets would be stopped one by one: see deliver().
QueuePair* Hca::takes_train(fabric::Port& port, const fabric::Frame& train) {
    const Packet& packet = train.transport_as<Packet>();
    QueuePair* const qp = is_dead_ || !is_for(port, train) || !is_of_its_vlans(port, train)
                              ? nullptr
                              : qps_.find(packet.dest_qpn);
    if (qp == nullptr || qp->context().is_dead()) {
        return nullptr;
    }
    const QpAttributes& attributes = qp->attributes();
    return fabric::pkeys_match(packet.pkey, port.attributes().pkeys[attributes.pkey_index]) &&
                   train.ecn != fabric::Ecn::kCongested
               ? qp
               : nullptr;
}

bool Hca::take_ahead(fabric::Port& port, fabric::Frame& train) {
    QueuePair* const qp = takes_train(port, train);
    if (qp == nullptr) {
        return false;
    }
    Packet& packet = train.transport_as<Packet>();
    settle_for(*qp, packet);
    packet.is_placed = qp->take_ahead(port, train);
    return packet.is_placed;
}

bool Hca::would_take(fabric::Port& port, const fabric::Frame& train, fabric::SimTime last,
                     fabric::TouchedMemories& touched) {
    QueuePair* const qp = takes_train(port, train);
    std::span<const MemorySpan> to;
    if (qp == nullptr || !qp->would_take(port, train, last, to)) {
        return false;
    }
    const auto is_of_process = [](const MemorySpan& span) {
        return span.kind == MemoryKind::kProcess;
    };
    const Packet& packet = train.transport_as<Packet>();
    const std::span from(packet.payload.spans, packet.payload.span_count);
    touched = {read_by(packet), part_of(qp->memory(packet.srq), to)};
    return std::ranges::all_of(to, is_of_process) &&
           (touched.from.memory == nullptr || std::ranges::all_of(from, is_of_process));
}

// All processes that share the memory of this one have one memory.
fabric::TouchedMemory Hca::whole(const AddressSpace& memory) const {
    return {memory.is_own() ? &commons_.own_memory : &memory, 0,
            std::numeric_limits<std::uint64_t>::max()};
}

// Returns the smallest part with all of the spans in it.
fabric::TouchedMemory Hca::part_of(const AddressSpace& memory,
                                   std::span<const MemorySpan> spans) const {
    fabric::TouchedMemory part = whole(memory);
    std::swap(part.begin, part.end);
    for (const MemorySpan& span : spans) {
        part.begin = std::min(part.begin, span.address);
        part.end = std::max(part.end, span.address + span.length);
    }
    return part;
}

// Nobody else knows the copy that a response is sent from.
fabric::TouchedMemory Hca::read_by(const Packet& packet) const {
    const Payload& payload = packet.payload;
    return payload.space == nullptr || packet.operation().response()
               ? fabric::TouchedMemory{}
               : part_of(*payload.space, {payload.spans, payload.span_count});
}

// Before anything that a packet for `qp` may read, write or change. Where it writes is not known
// yet; an acknowledgment writes nowhere.
void Hca::settle_for(const QueuePair& qp, const Packet& packet) {
    fabric::DeferredArrivals& deferred = network_.deferred_arrivals();
    if (deferred.empty()) [[likely]] {
        return;
    }
    if (packet.operation().kind != MessageKind::kRead) {
        take_borrowed_of(qp.context().client().memory());
        take_borrowed_of(qp.memory(packet.srq));
    }
    const bool copies = packet.operation().kind != MessageKind::kAck;
    deferred.settle(node_,
                    copies ? fabric::TouchedMemories{read_by(packet), whole(qp.memory(packet.srq))}
                           : fabric::TouchedMemories{});
}

// Before what is sent by a timer.
void Hca::settle_for_reads_of(const QueuePair& qp) {
    fabric::DeferredArrivals& deferred = network_.deferred_arrivals();
    if (!deferred.empty()) {
        deferred.settle(node_, {whole(qp.memory(SrqNumber{})), {}});
    }
}

bool Hca::was_ever(std::uint32_t qpn) const {
    return std::any_of(commons_.by_node.begin(), commons_.by_node.end(), [qpn](const Hca* hca) {
        return hca != nullptr && hca->qps_.was_given_out(qpn);
    });
}

void Hca::report_source_fault(const Packet& packet) {
    Hca* sender = commons_.by_node[arriving_->source.value()];
    QueuePair* qp = sender == nullptr ? nullptr : sender->qps_.find(packet.source_qpn);
    if (qp != nullptr && !qp->context().is_dead()) {
        qp->source_unreadable(packet.psn);
    }
}

void Hca::port_event(fabric::Port& port, fabric::PortEvent event) {
    const AsyncEvent told = async_event(event);
    if (told == AsyncEvent::kDeviceSpeedChange && !commons_.tells_speed_changes) {
        return;
    }
    const bool is_of_port = properties(told).subject == EventSubject::kPort;
    for (const auto& [handle, context] : contexts_) {
        context->raise(told, is_of_port ? port.number().value() : 0U);
    }
    if (client_ != nullptr) {
        client_->port_event(port, told);
    }
}

void Hca::die(std::string_view why) {
    for (const auto& [handle, context] : contexts_) {
        context->raise(AsyncEvent::kDeviceFatal, 0);
    }
    stop_contexts(why);
}

void Hca::lose_power(std::string_view why) {
    abandon_all(why);
    stop_contexts(why);
    has_power_ = false;
}

void Hca::stop_contexts(std::string_view why) {
    late_landings_.finish();
    for (const auto& [handle, context] : contexts_) {
        context->die(why);
    }
    is_dead_ = true;
    if (client_ != nullptr) {
        client_->device_gone();
    }
}

void Hca::restart() {
    is_dead_ = false;
    has_power_ = true;
    is_present_ = true;
    has_dead_contexts_ = !contexts_.empty();
    if (client_ != nullptr) {
        client_->device_back();
    }
}

void Hca::abandon(DeviceContext& context, std::string_view why) {
    context.abandon(why);
    has_dead_contexts_ = true;
}

void Hca::abandon_all(std::string_view why) {
    for (const auto& [handle, context] : contexts_) {
        if (!context->is_dead()) {
            abandon(*context, why);
        }
    }
}

bool Hca::is_in_use() const {
    return std::any_of(contexts_.begin(), contexts_.end(),
                       [](const auto& entry) { return !entry.second->is_dead(); });
}

bool Hca::is_of_dead_context(std::uint32_t qpn) const {
    const QueuePair* qp = qps_.find(qpn);
    return qp != nullptr && qp->context().is_dead();
}

QueuePair* Hca::find_made(std::uint32_t ordinal) const {
    QueuePair* found = nullptr;
    for_each_qp([&found, ordinal](QueuePair& qp) {
        if (qp.ordinal() == ordinal) {
            found = &qp;
        }
    });
    return found;
}

CompletionQueue* Hca::find_cq(std::uint32_t handle) const {
    for (const auto& [number, context] : contexts_) {
        CompletionQueue* const cq = context->is_dead() ? nullptr : context->find_cq(handle);
        if (cq != nullptr) {
            return cq;
        }
    }
    return nullptr;
}

void Hca::keep_payload(fabric::Frame& frame) {
    if (frame.cargo != nullptr || frame.is_management) {
        return;
    }
    Packet& packet = frame.transport_as<Packet>();
    if (packet.payload.length == 0) {
        return;
    }
    Snapshot& snapshot = commons_.snapshots.take();
    if (gather_payload(packet.payload, snapshot.bytes()) == CopyOutcome::kCopied) {
        packet.payload = snapshot.payload(commons_.own_memory, packet.payload.length);
        frame.cargo = &snapshot;
    } else {
        packet.payload.space = nullptr;  // nothing is left to carry
        snapshot.release();
    }
}

}  // namespace simverbs
