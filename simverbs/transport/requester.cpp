// Transmission; answers are in completer.cpp, recovery is in recovery.cpp.
#include "simverbs/transport/requester.hpp"

#include <algorithm>
#include <numeric>

#include "fabric/core/assert.hpp"

namespace simverbs {
namespace {

// Payload packets on their way at once: enough to fill the pipe of any link here, few enough that
// two queue pairs of a port share it fairly.
constexpr std::uint32_t kWindowPackets = 64;
constexpr std::uint32_t kWindowBytes = 256 * 1024;
// A PSN is old or new relative to half the circle (IBA 9.7.2): never more than that on the wire.
constexpr std::uint32_t kMaxPsnsOutstanding = Psn::kModulus / 2 - 1;
constexpr std::uint32_t kControlledQkeyBit = 0x8000'0000;

std::uint32_t window_packets(std::uint32_t path_mtu) {
    return std::max(kWindowPackets, kWindowBytes / path_mtu);
}

FaultCause cause_of(KeyVerdict verdict, bool landing) {
    switch (verdict) {
        case KeyVerdict::kRightMissing:
            return FaultCause::kLandingRight;
        case KeyVerdict::kOutOfRange:
            return landing ? FaultCause::kLandingRange : FaultCause::kGatherRange;
        case KeyVerdict::kGranted:
        case KeyVerdict::kUnknownKey:
        case KeyVerdict::kOtherProtectionDomain:
            break;
    }
    return landing ? FaultCause::kLandingKey : FaultCause::kGatherKey;
}

bool is_flush(const SendWqe& wqe) {
    const FlushRequest flush = flush_of(wqe);
    return wqe.segment_count == 0 && is_flush(PlacementTypes::from_bits(flush.placement),
                                              static_cast<FlushReach>(flush.reach));
}

}  // namespace

Requester::Requester(const QpAttributes& attributes, const Personality& personality,
                     const WorkQueueShape& shape, QpMemory memory, Effects& effects)
    : attributes_(attributes),
      personality_(personality),
      service_(properties(attributes.service)),
      memory_(memory),
      effects_(effects),
      window_(shape) {}

void Requester::start() {
    next_psn_ = oldest_psn_ = sent_end_ = window_start_ = attributes_.sq_psn;
    transmissions_.start(next_psn_);
    retries_left_ = attributes_.retry_count;
    rnr_retries_left_ = attributes_.rnr_retry;
    rnr_naks_ = 0;
    since_ack_request_ = 0;
    move(RequesterEvent::kStart);
}

void Requester::move(RequesterEvent event) {
    const std::optional<RequesterState> to = next_state(state_, event);
    SIMVERBS_ASSERT(to, "QP {:#x}: a requester in {} has no move on '{}'", attributes_.qpn,
                    to_string(state_), to_string(event));
    state_ = *to;
}

void Requester::resume() {
    next_psn_ = sent_end_;
    const Psn psn = next_psn_;
    start();
    next_psn_ = oldest_psn_ = sent_end_ = window_start_ = psn;
    transmissions_.start(psn);
}

void Requester::post(std::uint32_t producer) {
    window_.set_posted(producer);
}

void Requester::reset(std::uint32_t producer) {
    effects_.disarm(EngineTimer::kAcknowledge);
    effects_.disarm(EngineTimer::kRnr);
    effects_.disarm(EngineTimer::kTransmitted);
    window_.reset(producer);
    cursor_ = unacknowledged_ = producer;
    cursor_packet_ = 0;
    move(RequesterEvent::kStop);
}

bool Requester::drained() const {
    return unacknowledged_ == cursor_ && cursor_packet_ == 0 &&
           distance(oldest_psn_, sent_end_) <= 0;
}

EngineResult Requester::run() {
    transmit_pending();
    return take_failure();
}

void Requester::transmit_pending() {
    if (stopped() || waits_for_receive(state_)) {
        return;
    }
    while (!stopped() && transmit_next()) {
    }
    if (!stopped()) {
        watch_for_answer();
    }
}

bool Requester::transmit_next() {
    SendRequest* request = at_cursor();
    if (request == nullptr) {
        return false;
    }
    if (!request->started && attributes_.state != QpState::kRts) {
        return false;  // SQD: those that have started go on, no other begins
    }
    if (request->failure != WcStatus::kSuccess) {
        // Found before a packet left: it fails in its turn, after those before it.
        if (cursor_ == window_.head()) {
            fail_oldest(request->failure, request->cause);
        }
        return false;
    }
    if (!request->started && !may_start(*request)) {
        return false;
    }
    if (request->is_local()) {
        return execute_local(*request);
    }
    if (window_full(*request) || waits_for_its_rate()) {
        return false;
    }
    if (!request->opcode->returns_data && effects_.key_generation() != request->key_generation &&
        !open_spans(*request, cursor_)) {
        return true;  // look at it again: it has failed
    }
    if (const std::uint16_t packets = transmit(*request); packets > 0) {
        advance_cursor(*request, packets);
    }
    return true;
}

// The request to send from, fetched if need be; null when there is none that may be sent.
SendRequest* Requester::at_cursor() {
    if (cursor_ != window_.fetched()) {
        return &window_.at(cursor_);
    }
    if (!window_.may_fetch() || attributes_.state != QpState::kRts) {
        return nullptr;  // what is posted in SQD is looked at when it may start
    }
    const std::uint32_t index = window_.fetched();
    SendRequest& request = window_.fetch(effects_);
    prepare(request, index);
    return &request;
}

void Requester::prepare(SendRequest& request, std::uint32_t index) {
    request.opcode = find_wr_opcode(request.wqe.opcode);
    check(request, index);
    request.first_psn = next_psn_;
    const std::uint64_t mtu = attributes_.path_mtu;
    request.packets = request.failure == WcStatus::kSuccess && !request.is_local()
                          ? static_cast<std::uint32_t>(
                                std::max<std::uint64_t>(1, (request.length + mtu - 1) / mtu))
                          : 0;
    next_psn_ = next_psn_ + request.packets;
}

// It fails in its turn, as the row of its cause says.
void Requester::fail_request(SendRequest& request, FaultCause cause) const {
    request.failure =
        consequences(personality_, cause).requester.status.value_or(WcStatus::kGeneralErr);
    request.cause = cause;
}

void Requester::check(SendRequest& request, std::uint32_t index) {
    const auto refuse = [this, &request](FaultCause cause) { fail_request(request, cause); };
    if (request.failure != WcStatus::kSuccess) {
        return;
    }
    const SendWqe& wqe = request.wqe;
    if (request.opcode == nullptr ||
        !carries_out(personality_, *request.opcode, attributes_.service)) {
        refuse(FaultCause::kOpcodeNotForService);
        return;
    }
    if (has_flag(wqe, SendFlag::kInline) && !request.opcode->may_be_inline &&
        personality_.inline_on_read == BadRequest::kComplete) {
        refuse(FaultCause::kLandingKey);
        return;
    }
    if (request.is_local()) {
        return;  // what it names is looked at when its turn has come
    }
    // Queues without room for segments have a span for inline data all the same.
    const bool is_inline = has_flag(wqe, SendFlag::kInline) && request.opcode->may_be_inline;
    if (wqe.segment_count > window_.spans(index).size() ||
        (!is_inline && wqe.segment_count * sizeof(Segment) > window_.tail(index).size())) {
        refuse(FaultCause::kMalformedSend);
        return;
    }
    if (request.opcode->message == MessageKind::kFlush && !is_flush(wqe)) {
        refuse(FaultCause::kMalformedSend);
        return;
    }
    if (request.opcode->occupies_initiator && attributes_.max_rd_atomic == 0 &&
        personality_.initiator_depth_zero_completes) {
        refuse(FaultCause::kInitiatorDepthZero);
        return;
    }
    const std::uint64_t length = length_of(request, index);
    if (length > personality_.limits.port.max_message_bytes && personality_.checks_message_length) {
        refuse(FaultCause::kMessageTooLong);
        return;
    }
    if (!service_.segments && length > attributes_.path_mtu && personality_.checks_message_length) {
        refuse(FaultCause::kDatagramAboveMtu);
        return;
    }
    if (service_.uses_ah && !check_destination(request)) {
        return;
    }
    request.length = length;
    if (!request.opcode->returns_data && !open_spans(request, index)) {
        return;
    }
    const bool takes_more = personality_.atomic_not_eight_bytes != BadRequest::kComplete;
    if (request.opcode->atomic &&
        (takes_more ? request.length < kAtomicBytes : request.length != kAtomicBytes)) {
        refuse(FaultCause::kAtomicNotEightBytes);
    }
}

bool Requester::check_destination(SendRequest& request) const {
    const AddressVerdict verdict = effects_.check_address(request.wqe.address_handle);
    if (verdict == AddressVerdict::kUsable || (verdict == AddressVerdict::kOtherProtectionDomain &&
                                               !personality_.checks_pd_of_address_handle)) {
        return true;
    }
    fail_request(request, verdict == AddressVerdict::kOtherProtectionDomain
                              ? FaultCause::kAddressOfOtherPd
                              : FaultCause::kMalformedSend);
    return false;
}

// Of all segments together, whether they may be touched or not.
std::uint64_t Requester::length_of(const SendRequest& request, std::uint32_t index) {
    if (has_flag(request.wqe, SendFlag::kInline) && request.opcode->may_be_inline) {
        return request.wqe.inline_length;
    }
    const auto* segments = reinterpret_cast<const Segment*>(window_.tail(index).data());
    return std::accumulate(
        segments, segments + request.wqe.segment_count, std::uint64_t{0},
        [](std::uint64_t sum, const Segment& segment) { return sum + segment.length; });
}

// Checks the local keys, and keeps where the bytes are; false when the request has failed.
bool Requester::open_spans(SendRequest& request, std::uint32_t index) {
    const std::span<MemorySpan> spans = window_.spans(index);
    request.length = 0;
    request.span_count = 0;
    request.key_generation = effects_.key_generation();
    if (has_flag(request.wqe, SendFlag::kInline) && request.opcode->may_be_inline) {
        const std::span<std::byte> bytes = window_.tail(index);
        if (request.wqe.inline_length > bytes.size()) {
            fail_request(request, FaultCause::kMalformedSend);
            return false;
        }
        spans[0] = {reinterpret_cast<std::uint64_t>(bytes.data()), request.wqe.inline_length};
        request.span_count = 1;
        request.length = request.wqe.inline_length;
        return true;
    }
    const auto* segments = reinterpret_cast<const Segment*>(window_.tail(index).data());
    const AccessRights needed =
        request.opcode->returns_data ? AccessRights(Access::kLocalWrite) : AccessRights();
    for (std::uint16_t i = 0; i < request.wqe.segment_count; ++i) {
        if (segments[i].length == 0) {
            continue;  // no bytes, no key check (IBA 10.7.2.2)
        }
        const Grant grant = request.of_device ? effects_.open_receive(kNoSrq, segments[i])
                                              : effects_.open_local(segments[i], needed);
        if (grant.verdict != KeyVerdict::kGranted) {
            fail_request(request, cause_of(grant.verdict, request.opcode->returns_data));
            return false;
        }
        spans[request.span_count++] = grant.span;
        request.length += segments[i].length;
    }
    return true;
}

// READs and atomics that were asked for and not answered.
std::uint32_t Requester::initiated() {
    std::uint32_t count = 0;
    for (std::uint32_t index = unacknowledged_; index != cursor_; ++index) {
        count += window_.at(index).expects_response() ? 1U : 0U;
    }
    return count;
}

bool Requester::may_start(const SendRequest& request) {
    if (attributes_.state != QpState::kRts) {
        return false;
    }
    if (has_flag(request.wqe, SendFlag::kFence) && initiated() > 0) {
        return false;
    }
    if (request.opcode->opcode == WrOpcode::kLocalInv && unacknowledged_ != cursor_) {
        return false;  // requests before it may still need the key (IBA 10.8.3)
    }
    if (request.expects_response() && initiated() >= attributes_.max_rd_atomic) {
        return false;
    }
    const std::int32_t span = distance(oldest_psn_, request.first_psn);
    return static_cast<std::uint32_t>(span) + request.packets <= kMaxPsnsOutstanding || span == 0;
}

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

// The packet has arrived where its bytes are missing, so those before it have too; a READ among
// them is still answered, and the request fails in its turn.
EngineResult Requester::fail_source(Psn psn) {
    if (stopped() || !awaited(psn)) {
        return {};
    }
    acknowledge_before(psn);
    if (stopped()) {
        return {};
    }
    rewind(psn);
    SendRequest& request = window_.at(cursor_);
    fail_request(request, FaultCause::kGatherRange);
    return run();
}

void Requester::flush(FaultCause cause) {
    effects_.disarm(EngineTimer::kAcknowledge);
    effects_.disarm(EngineTimer::kRnr);
    effects_.disarm(EngineTimer::kTransmitted);
    move(RequesterEvent::kStop);
    while (!window_.empty()) {
        if (window_.head() == window_.fetched()) {
            SendRequest& request = window_.fetch(effects_);
            request.opcode = find_wr_opcode(request.wqe.opcode);
        }
        complete_head(WcStatus::kWrFlushErr, cause);
    }
    cursor_ = unacknowledged_ = window_.head();
    cursor_packet_ = 0;
}

}  // namespace simverbs
