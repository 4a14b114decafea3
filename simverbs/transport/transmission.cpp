// The packets of a send request: how many may go, what they carry, which of them ask for an
// acknowledgment, and what the requester then waits for.
#include <algorithm>

#include "simverbs/transport/requester.hpp"

namespace simverbs {
namespace {

// Payload packets on their way at once: enough to fill the pipe of any link here, few enough that
// two queue pairs of a port share it fairly.
constexpr std::uint32_t kWindowPackets = 64;
constexpr std::uint32_t kWindowBytes = 256 * 1024;
constexpr std::uint32_t kControlledQkeyBit = 0x8000'0000;

std::uint32_t window_packets(std::uint32_t path_mtu) {
    return std::max(kWindowPackets, kWindowBytes / path_mtu);
}

}  // namespace

bool Requester::window_full(const SendRequest& request) const {
    return !request.expects_response() && window_left(request) == 0;
}

// Payload packets that may go before something is acknowledged.
std::uint32_t Requester::window_left(const SendRequest& request) const {
    const Psn psn = request.first_psn + cursor_packet_;
    const std::int32_t from_oldest = distance(oldest_psn_, psn);
    const std::int32_t from_start = distance(window_start_, psn);
    const auto used = static_cast<std::uint32_t>(std::max(0, std::min(from_oldest, from_start)));
    const std::uint32_t window = window_packets(attributes_.path_mtu);
    return window - std::min(used, window);
}

// As how many of its packets the next one may go: those behind the first of a message that is sent
// for the first time, up to one that asks for an acknowledgment or is told from the others.
std::uint16_t Requester::train_length(const SendRequest& request) const {
    if (cursor_packet_ == 0 || !service_.acked || service_.srq_from_packet ||
        is_recovering(state_) || request.expects_response() ||
        (rate_ != nullptr && rate_->limited()) ||
        distance(sent_end_, request.first_psn + cursor_packet_) < 0) {
        return 1;
    }
    const bool ends_alone = request.opcode->trailer != Trailer::kNone;
    const std::uint32_t to_end = request.packets - cursor_packet_ - (ends_alone ? 1U : 0U);
    const std::uint32_t to_request = window_packets(attributes_.path_mtu) / 4 - since_ack_request_;
    const std::uint32_t length = std::min({to_end, to_request, window_left(request)});
    return length < 2 ? std::uint16_t{1}
                      : static_cast<std::uint16_t>(
                            std::min<std::uint32_t>(length, effects_.longest_train()));
}

// How many packets have gone; 0 when the request has failed instead.
std::uint16_t Requester::transmit(SendRequest& request) {
    const std::uint16_t packets = train_length(request);
    Packet packet = request_packet(request, packets);
    const bool last = request.expects_response() || cursor_packet_ + packets == request.packets;
    since_ack_request_ += packets - 1U;
    packet.solicited = last && has_flag(request.wqe, SendFlag::kSolicited);
    packet.ack_request = needs_acknowledgment(request, last);
    since_ack_request_ = packet.ack_request ? 0 : since_ack_request_ + 1;
    if (packet.operation().payload) {
        packet.payload.space =
            has_flag(request.wqe, SendFlag::kInline) && request.opcode->may_be_inline
                ? memory_.device
                : memory_.application;
        packet.payload.spans = window_.spans(cursor_).data();
        packet.payload.span_count = request.span_count;
        packet.payload.offset = std::uint64_t{cursor_packet_} * attributes_.path_mtu;
        packet.payload.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(
            std::uint64_t{attributes_.path_mtu} * packets, request.length - packet.payload.offset));
    }
    const bool again = distance(packet.psn, sent_end_) > 0;
    packet.attempt = transmissions_.next(packet.psn);
    request.retransmitted = request.retransmitted || again;
    request.started = true;
    if (!service_.acked) {
        return transmit_unacknowledged(packet, request) ? 1 : 0;
    }
    effects_.transmit(packet);
    spend_rate(packet);
    return packets;
}

bool Requester::waits_for_its_rate() const {
    return rate_ != nullptr && rate_->limited() && effects_.armed(EngineTimer::kRate);
}

// The next packet goes when this one has had its time.
void Requester::spend_rate(const Packet& packet) {
    if (rate_ != nullptr && rate_->limited()) {
        const std::uint64_t bytes = packet.payload.length + packet.operation().header_bytes;
        effects_.arm(EngineTimer::kRate, rate_->time_of(bytes));
        rate_->sent(bytes);
    }
}

// The bytes are taken now: the buffer goes back before the packet arrives. A datagram that is too
// long for the port, where the device does not look, leaves and is never seen again.
bool Requester::transmit_unacknowledged(const Packet& packet, SendRequest& request) {
    CopyOutcome outcome = CopyOutcome::kCopied;
    if (service_.uses_ah && packet.payload.length == request.length) {
        outcome = effects_.transmit_datagram(packet, request.wqe.address_handle);
    } else if (!service_.uses_ah) {
        outcome = effects_.transmit_snapshot(packet);
        spend_rate(packet);
    }
    if (outcome == CopyOutcome::kCopied) {
        return true;
    }
    fail_request(request, FaultCause::kGatherRange);
    return false;
}

Packet Requester::request_packet(const SendRequest& request, std::uint16_t packets) const {
    const std::uint32_t packet_index = cursor_packet_;
    const bool responds = request.expects_response();
    const bool first = responds || packet_index == 0;
    const bool last = responds || packet_index + packets == request.packets;
    const PacketPosition position = first
                                        ? (last ? PacketPosition::kOnly : PacketPosition::kFirst)
                                        : (last ? PacketPosition::kLast : PacketPosition::kMiddle);
    Packet packet;
    packet.opcode = kEncodeOpcode(service_.wire_transport, request.opcode->message, position,
                                  last ? request.opcode->trailer : Trailer::kNone);
    packet.psn = request.first_psn + packet_index;
    packet.packets = packets;
    packet.train_mtu = static_cast<std::uint16_t>(attributes_.path_mtu);
    packet.dest_qpn = attributes_.dest_qpn;
    packet.source_qpn = attributes_.qpn;
    packet.srq = SrqNumber(request.wqe.remote_qpn);
    if (service_.uses_ah) {
        packet.dest_qpn = request.wqe.remote_qpn;
        packet.qkey = request.wqe.remote_qkey;
        // A controlled Q_Key is the queue pair's own (IBA 10.2.5).
        if ((packet.qkey & kControlledQkeyBit) != 0 && personality_.well_known_qkey_rule) {
            packet.qkey = attributes_.qkey;
        }
    }
    packet.immediate = request.wqe.immediate;
    packet.rkey = request.wqe.rkey;
    packet.remote_address = request.wqe.remote_address;
    packet.dma_length = static_cast<std::uint32_t>(request.length);
    if (request.opcode->message == MessageKind::kFlush) {
        const FlushRequest flush = flush_of(request.wqe);
        packet.dma_length = flush.length;
        packet.placement = PlacementTypes::from_bits(flush.placement);
        packet.reach = static_cast<FlushReach>(flush.reach);
    } else if (responds) {
        // A READ that is asked for again continues behind what has arrived (IBA 9.7.5.1.9).
        const std::uint64_t done = std::uint64_t{packet_index} * attributes_.path_mtu;
        packet.remote_address += done;
        packet.dma_length -= static_cast<std::uint32_t>(done);
        packet.compare = request.wqe.compare_add;
        packet.swap_add = request.opcode->message == MessageKind::kFetchAdd
                              ? request.wqe.compare_add
                              : request.wqe.swap;
    }
    return packet;
}

// The last packet of a message asks for an acknowledgment unless a later message surely will, and a
// long message asks often enough to keep its window open.
bool Requester::needs_acknowledgment(const SendRequest& request, bool last) {
    if (!service_.acked) {
        return false;
    }
    if (request.expects_response()) {
        return true;
    }
    if (since_ack_request_ + 1 >= window_packets(attributes_.path_mtu) / 4 ||
        is_recovering(state_)) {
        return true;
    }
    if (!last) {
        return false;
    }
    if (has_flag(request.wqe, SendFlag::kSignaled)) {
        return true;
    }
    if (cursor_ + 1 == window_.posted() || attributes_.state != QpState::kRts) {
        return true;
    }
    if (cursor_ + 1 == window_.fetched()) {
        if (!window_.may_fetch()) {
            return true;
        }
        const std::uint32_t next = window_.fetched();
        prepare(window_.fetch(effects_), next);
    }
    const SendRequest& following = window_.at(cursor_ + 1);
    return following.failure != WcStatus::kSuccess || following.is_local() || !may_start(following);
}

void Requester::advance_cursor(const SendRequest& request, std::uint16_t packets) {
    const bool responds = request.expects_response();
    const Psn begin = request.first_psn + cursor_packet_;
    const Psn end = responds ? request.end_psn() : begin + packets;
    transmissions_.add(begin, static_cast<std::uint32_t>(distance(begin, end)));
    if (distance(sent_end_, end) > 0) {
        sent_end_ = end;
    }
    if (responds) {
        window_start_ = request.end_psn();
    }
    if (responds || cursor_packet_ + packets == request.packets) {
        ++cursor_;
        cursor_packet_ = 0;
    } else {
        cursor_packet_ += packets;
    }
}

void Requester::watch_transmitter() {
    if (distance(oldest_psn_, sent_end_) > 0 && !effects_.armed(EngineTimer::kTransmitted)) {
        leaving_end_ = sent_end_;
        effects_.arm_when_transmitter_free(EngineTimer::kTransmitted, {});
    }
}

void Requester::watch_for_answer() {
    if (!service_.acked) {
        watch_transmitter();
        return;
    }
    const bool rests = waits_for_receive(state_) && !personality_.rnr_wait_uses_ack_timer;
    if (rests || distance(oldest_psn_, sent_end_) <= 0) {
        effects_.disarm(EngineTimer::kAcknowledge);
        return;
    }
    if (const auto wait = ack_timeout(personality_, attributes_.timeout);
        wait && !effects_.armed(EngineTimer::kAcknowledge)) {
        effects_.arm(EngineTimer::kAcknowledge, *wait);
    }
}

}  // namespace simverbs
