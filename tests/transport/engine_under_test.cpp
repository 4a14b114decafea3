#include "tests/transport/engine_under_test.hpp"

#include <fmt/format.h>

namespace simverbs::test {
namespace {

constexpr std::uint32_t kSegments = 4;
constexpr std::uint32_t kInlineBytes = 256;

std::string answer_text(const Packet& packet) {
    const WireOpcode& operation = packet.operation();
    if (operation.kind != MessageKind::kAck) {
        return fmt::format("{} {}", operation.operation, packet.psn.value());
    }
    switch (packet.syndrome.kind) {
        case AethKind::kAck:
            return fmt::format("ACK {}", packet.psn.value());
        case AethKind::kRnrNak:
            return fmt::format("RNR NAK {} at {}", packet.syndrome.value, packet.psn.value());
        case AethKind::kNak:
            break;
    }
    return fmt::format("NAK {} at {}", packet.syndrome.value, packet.psn.value());
}

}  // namespace

QpAttributes connected_attributes() {
    QpAttributes attributes;
    attributes.state = QpState::kRts;
    attributes.qpn = kQpn;
    attributes.dest_qpn = kPeerQpn;
    attributes.sq_psn = attributes.rq_psn = Psn(100);
    attributes.path_mtu = kMtu;
    attributes.access = AccessRights(Access::kLocalWrite) | Access::kRemoteWrite |
                        Access::kRemoteRead | Access::kRemoteAtomic;
    attributes.timeout = 14;
    attributes.retry_count = 3;
    attributes.rnr_retry = 2;
    attributes.min_rnr_timer = 12;
    attributes.max_rd_atomic = 4;
    attributes.max_dest_rd_atomic = 4;
    return attributes;
}

RequesterUnderTest::RequesterUnderTest(const QpAttributes& with, std::uint32_t slots)
    : RequesterUnderTest(with, send_queue_shape(slots, kSegments, kInlineBytes)) {}

RequesterUnderTest::RequesterUnderTest(const Personality& personality)
    : RequesterUnderTest(connected_attributes(), send_queue_shape(64, kSegments, kInlineBytes),
                         personality) {}

RequesterUnderTest::RequesterUnderTest(const QpAttributes& with, const WorkQueueShape& shape,
                                       const Personality& personality)
    : attributes(with),
      effects(attributes),
      requester(attributes, personality, shape, {}, effects) {
    effects.on_fail = [this] { requester.flush(FaultCause::kFlushed); };
    requester.start();
}

void RequesterUnderTest::write(WrOpcode opcode, std::uint32_t length, SendFlags flags,
                               std::uint32_t lkey) {
    PostedSend send;
    send.wqe.wr_id = effects.sends.size();
    send.wqe.opcode = static_cast<std::uint8_t>(opcode);
    send.wqe.flags = static_cast<std::uint8_t>(flags.bits);
    send.wqe.remote_address = kRemote;
    send.wqe.rkey = RecordingEffects::kGoodKey;
    send.wqe.immediate = 0x11223344;
    if (flags.contains(SendFlag::kInline)) {
        send.wqe.inline_length = length;
        send.inline_bytes.resize(length);
    } else {
        send.wqe.segment_count = 1;
        send.segments = {{kLocal, length, lkey}};
    }
    effects.post(send);
}

void RequesterUnderTest::doorbell() {
    requester.post(static_cast<std::uint32_t>(effects.sends.size()));
    run();
}

void RequesterUnderTest::run() {
    effects.end(requester.run());
}

void RequesterUnderTest::post(WrOpcode opcode, std::uint32_t length, SendFlags flags,
                              std::uint32_t lkey) {
    write(opcode, length, flags, lkey);
    doorbell();
}

void RequesterUnderTest::ack(std::uint32_t psn) {
    Packet packet = request(MessageKind::kAck, PacketPosition::kOnly, psn);
    effects.end(requester.receive(packet));
}

void RequesterUnderTest::nak(std::uint32_t psn, NakCode code, FaultCause cause) {
    Packet packet = request(MessageKind::kAck, PacketPosition::kOnly, psn);
    packet.syndrome = AethSyndrome::nak(code);
    packet.cause = cause;
    effects.end(requester.receive(packet));
}

void RequesterUnderTest::rnr_nak(std::uint32_t psn, std::uint8_t timer_code) {
    Packet packet = request(MessageKind::kAck, PacketPosition::kOnly, psn);
    packet.syndrome = AethSyndrome::rnr_nak(timer_code);
    effects.end(requester.receive(packet));
}

void RequesterUnderTest::read_response(std::uint32_t psn, PacketPosition position,
                                       std::uint32_t length) {
    Packet packet = request(MessageKind::kReadResponse, position, psn);
    packet.payload.length = length;
    effects.end(requester.receive(packet));
}

void RequesterUnderTest::atomic_response(std::uint32_t psn, std::uint64_t original) {
    Packet packet = request(MessageKind::kAtomicAck, PacketPosition::kOnly, psn);
    packet.compare = original;
    effects.end(requester.receive(packet));
}

void RequesterUnderTest::fire(EngineTimer timer) {
    ASSERT_EQ(effects.timers.erase(timer), 1U) << "the timer was not armed";
    effects.end(requester.timer_expired(timer));
}

std::vector<std::uint32_t> RequesterUnderTest::take_psns() {
    std::vector<std::uint32_t> psns;
    for (const Packet& packet : effects.take_packets()) {
        psns.push_back(packet.psn.value());
    }
    return psns;
}

std::vector<std::string> RequesterUnderTest::take_opcodes() {
    std::vector<std::string> names;
    for (const Packet& packet : effects.take_packets()) {
        names.emplace_back(packet.operation().operation);
    }
    return names;
}

std::vector<WcStatus> RequesterUnderTest::statuses() const {
    std::vector<WcStatus> result;
    for (const SendCompletion& completion : effects.sent) {
        result.push_back(completion.status);
    }
    return result;
}

std::vector<std::uint64_t> RequesterUnderTest::ids() const {
    std::vector<std::uint64_t> result;
    for (const SendCompletion& completion : effects.sent) {
        result.push_back(completion.wr_id);
    }
    return result;
}

ResponderUnderTest::ResponderUnderTest(const Personality& personality, const QpAttributes& with)
    : attributes(with),
      effects(attributes),
      responder(attributes, personality, {.max_segments = kSegments}, {}, effects) {
    effects.on_fail = [this] { responder.flush(); };
    responder.start();
}

void ResponderUnderTest::post_receive(std::uint64_t wr_id, std::uint32_t length,
                                      std::uint32_t lkey) {
    effects.receives.push_back({wr_id, {{kLocal, length, lkey}}});
}

void ResponderUnderTest::give(const Packet& packet) {
    effects.end(responder.receive(packet));
}

void ResponderUnderTest::transmitter_free() {
    effects.end(responder.transmitter_free());
}

void ResponderUnderTest::send(PacketPosition position, std::uint32_t psn, std::uint32_t length,
                              Trailer trailer) {
    Packet packet = request(MessageKind::kSend, position, psn, trailer);
    packet.payload.length = length;
    give(packet);
}

void ResponderUnderTest::write(PacketPosition position, std::uint32_t psn, std::uint32_t length,
                               std::uint32_t dma_length, Trailer trailer, std::uint32_t rkey) {
    Packet packet = request(MessageKind::kWrite, position, psn, trailer);
    packet.payload.length = length;
    packet.dma_length = position == PacketPosition::kOnly && dma_length == 0 ? length : dma_length;
    packet.rkey = rkey;
    give(packet);
}

void ResponderUnderTest::read(std::uint32_t psn, std::uint32_t length, std::uint32_t rkey) {
    Packet packet = request(MessageKind::kRead, PacketPosition::kOnly, psn);
    packet.dma_length = length;
    packet.rkey = rkey;
    give(packet);
}

void ResponderUnderTest::fetch_add(std::uint32_t psn, std::uint64_t add, std::uint64_t address) {
    Packet packet = request(MessageKind::kFetchAdd, PacketPosition::kOnly, psn);
    packet.remote_address = address;
    packet.swap_add = add;
    packet.dma_length = kAtomicBytes;
    give(packet);
}

void ResponderUnderTest::compare_swap(std::uint32_t psn, std::uint64_t compare,
                                      std::uint64_t swap) {
    Packet packet = request(MessageKind::kCompareSwap, PacketPosition::kOnly, psn);
    packet.compare = compare;
    packet.swap_add = swap;
    packet.dma_length = kAtomicBytes;
    give(packet);
}

std::vector<std::string> ResponderUnderTest::take_answers() {
    std::vector<std::string> answers;
    for (const Packet& packet : effects.take_packets()) {
        answers.push_back(answer_text(packet));
    }
    return answers;
}

Packet request(MessageKind kind, PacketPosition position, std::uint32_t psn, Trailer trailer) {
    Packet packet;
    packet.opcode = kEncodeOpcode(WireTransport::kRc, kind, position, trailer);
    packet.psn = Psn(psn);
    packet.dest_qpn = kQpn;
    packet.source_qpn = kPeerQpn;
    packet.ack_request = true;
    packet.remote_address = kRemote;
    packet.rkey = RecordingEffects::kGoodKey;
    packet.immediate = 0x11223344;
    return packet;
}

}  // namespace simverbs::test
